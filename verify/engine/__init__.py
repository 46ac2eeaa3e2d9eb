"""Running checks: selection, isolation, torch's host process, the verdict."""
