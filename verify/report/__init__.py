"""A run's report, a dict of ``schema.json``'s shape, as terminal table, JUnit XML and web page."""
