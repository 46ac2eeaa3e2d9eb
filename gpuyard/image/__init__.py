"""Images put together from layers: base, configuration, manifest, and the way into an engine."""
