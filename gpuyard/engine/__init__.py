"""The Docker engine: the daemon, containers of a session, the options of a start and their checks."""
