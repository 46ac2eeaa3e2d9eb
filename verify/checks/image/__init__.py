"""Checks of what is installed: packages, compiled files, torch's libraries."""
