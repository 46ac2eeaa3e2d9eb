"""verify: find the first broken link between the host's driver and a training step that learns.

Runs inside every image (``verify``) and on bare metal (``python -m verify``). It needs
nothing but the standard library and Python 3.9; what a check needs beyond that (torch,
a driver, a lock) it says itself.
"""
