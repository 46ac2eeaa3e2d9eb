"""Publishing: facts read in an image, its evidence, and the way of both to a registry, tags last."""
