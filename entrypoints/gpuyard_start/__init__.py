"""What runs when a container starts. Standard library only; nothing here imports torch."""
