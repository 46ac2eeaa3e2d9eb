"""Training examples: each a script with --help, and a notebook that uses the same code."""
