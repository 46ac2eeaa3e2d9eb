"""GPUs and limits, as the start's first lines describe them."""
