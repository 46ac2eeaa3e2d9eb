"""Checks with several ranks or several GPUs."""
