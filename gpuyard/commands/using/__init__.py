"""Commands that use images: run, verify, report, list, pick, diff, new, render, engine."""
