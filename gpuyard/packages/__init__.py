"""Wheels: which of them a lock requires, where they are, and how they get into the store."""
