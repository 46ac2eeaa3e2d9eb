"""A user's project as an image: what its folder says, its lock, and its layers on top of a line's image."""
