"""Wheels: which ones a lock stands for, where they are, and how they get into the store."""
