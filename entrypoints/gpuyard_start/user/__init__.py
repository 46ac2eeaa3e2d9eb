"""Who the container runs as, and the folders of that user."""
