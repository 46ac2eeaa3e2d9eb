"""Lines of Jupyter's own start that help nobody, or that name an address which is not the user's."""

from __future__ import annotations

import logging
import re

LOGGERS = ("ServerApp", "LabApp", "JupyterApp")
_CHATTER = re.compile(
    r"[\w-]+ \| extension was successfully |Registered [\w-]+ server extension|Prometheus metrics reporting disabled"
    r"|Writing Jupyter server cookie secret|JupyterLab (extension loaded|application directory)|Extension Manager is "
    r"|Serving (local )?notebooks from|Jupyter Server [\d.]+ is running|\s*(or )?https?://|Use Control-C to stop"
    r"|Skipped non-installed server|Package \S+ took"
)


class Chatter(logging.Filter):
    """Drops such lines; a warning is none, whatever it says."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line is kept."""
        return record.levelno > logging.INFO or not _CHATTER.match(record.getMessage())
