"""Commands that make images: build, fetch, lock, reproduce, update, clean."""
