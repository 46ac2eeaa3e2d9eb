"""`python -m gpuyard`."""

from gpuyard.cli import main

main()
