"""Checks that train a small model and assert that it learned."""
