"""A run's report as data (``report.Report``, ``schema.json``), terminal table, JUnit XML and web page."""
