# Jupyter's settings: the user's own files first, as Jupyter itself reads them, then those of this start, so that
# a forgotten file in a mounted home can't open the server. They lie beside this file's link, in a private folder.
import json
import os
import sys
import warnings
from pathlib import Path

from jupyter_core.paths import jupyter_config_path  # type: ignore[import-not-found, unused-ignore]
from traitlets.config import (  # type: ignore[import-not-found, unused-ignore]
    Config,
    ConfigFileNotFound,
    JSONFileConfigLoader,
    PyFileConfigLoader,
)

# Under a name that no package of the user's has; 'entrypoints' is one that many install.
sys.path.append(str(Path(__file__).resolve().parents[2]))
from gpuyard_start.log import Log  # type: ignore[import-not-found, unused-ignore]

NAME = "jupyter_server_config"
log = Log(os.environ.get("GPUYARD_LOG") or "text", "jupyter")
# Of the memory figure's extension, once for every start.
warnings.filterwarnings("ignore", message="date_default is deprecated")
# Jupyter gives this function to the file.
config = get_config()  # type: ignore[name-defined]  # noqa: F821
for folder in reversed(jupyter_config_path()):
    for loader in (JSONFileConfigLoader(f"{NAME}.json", folder), PyFileConfigLoader(f"{NAME}.py", folder)):
        try:
            config.merge(loader.load_config())
        except ConfigFileNotFound:
            continue
        except Exception as error:
            log.warning(
                "jupyter-config-ignored", f"{loader.full_filename} is left out: {type(error).__name__}: {error}"
            )
ours = json.loads((Path(__file__).parent / "settings.json").read_text("utf-8"))
# One of the user's lists stays beside ours, which would replace it as a whole.
ours["ServerApp"]["jpserver_extensions"] = {
    **config.ServerApp.get("jpserver_extensions", {}),
    **ours["ServerApp"]["jpserver_extensions"],
}
config.merge(Config(ours))
