"""The content-addressed store of wheels and layers, and the disk it uses."""
