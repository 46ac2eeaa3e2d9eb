"""What exists: release lines, systems, images and their locks, and what an image claims."""
