"""Layers made without a build: a pure function of wheels or files, so the same bytes everywhere."""
