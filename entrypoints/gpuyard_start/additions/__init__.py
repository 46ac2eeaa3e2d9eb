"""What a user adds: hooks, packages, caches, certificates."""
