"""Checks of the driver and the GPUs, as the driver and torch see them."""
