# Read by every notebook kernel of the container: where memory runs out, a kernel goes before Jupyter and sshd do.
import logging
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

with suppress(OSError):
    Path("/proc/self/oom_score_adj").write_text("500")

# Kernel and server talk on the container's own loopback; a line about that for every kernel hides others.
logging.getLogger("IPKernelApp").addFilter(lambda record: "without encryption" not in record.getMessage())

# Another Python's kernel may not know the image's packages.
if find_spec("entrypoints") and find_spec("entrypoints.gpuyard_start"):
    get_config().InteractiveShellApp.extensions.append("entrypoints.gpuyard_start.kernel")  # type: ignore[name-defined] # noqa: F821
