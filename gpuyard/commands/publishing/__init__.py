"""Commands that publish images: publish, inspect, tags, pipeline, bases, page."""
