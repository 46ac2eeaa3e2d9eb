"""Drops log lines of Jupyter's start that help nobody, or that name an address other than the user's."""

from __future__ import annotations

import logging
import re

_NOISE = re.compile(
    r"[\w-]+ \| extension was successfully |Registered [\w-]+ server extension|Prometheus metrics reporting disabled"
    r"|Writing Jupyter server cookie secret|JupyterLab (extension loaded|application directory)|Extension Manager is "
    r"|Serving (local )?notebooks from|Jupyter Server [\d.]+ is running|\s*(or )?https?://|Use Control-C to stop"
    r"|Skipped non-installed server|Extension package \S+ took"
)


# Warnings about Jupyter's own defaults, which nobody here can or should change.
_DEFAULTS = re.compile(
    r"Could not determine jupyterlab build status without nodejs|The websocket_ping_timeout .* cannot be longer"
    r"|Notebook \S+ is not trusted"
    # Inside a container that is the only way; a start without a login warns in its own line.
    r"|WARNING: The Jupyter server is listening on all IP addresses"
)


class LogFilter(logging.Filter):
    """Drops such lines; any other warning is kept."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line is kept."""
        dropped = _NOISE if record.levelno <= logging.INFO else _DEFAULTS
        return not dropped.match(record.getMessage())
