"""Checks that compute and compare values."""
