"""Checks of how the container was started: mounts, shared memory, limits, network."""
