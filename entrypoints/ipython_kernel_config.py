# Read by every notebook kernel of the container: where memory runs out, a kernel goes before Jupyter and sshd do.
import logging
import sys
from contextlib import suppress
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

with suppress(OSError):
    Path("/proc/self/oom_score_adj").write_text("500")

# Kernel and server talk on the container's own loopback; a line about that for every kernel hides others.
logging.getLogger("IPKernelApp").addFilter(lambda record: "without encryption" not in record.getMessage())

# By its place: no folder more to import from, and no name that a package of the user's could have.
_PLACE = "/opt/gpuyard/entrypoints/gpuyard_start"
_SPEC = spec_from_file_location("gpuyard_start", f"{_PLACE}/__init__.py", submodule_search_locations=[_PLACE])
if _SPEC and Path(_PLACE).is_dir():
    sys.modules.setdefault("gpuyard_start", module_from_spec(_SPEC))
    get_config().InteractiveShellApp.extensions.append("gpuyard_start.jupyter.kernel")  # type: ignore[name-defined] # noqa: F821
