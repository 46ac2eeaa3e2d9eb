"""JupyterLab's settings, as data in a private file: the token is on no command line and in no environment."""

from __future__ import annotations

import re
from pathlib import Path

from .. import places
from ..gpu import limits, nvml
from ..services import ports
from .config import Jupyter

# Beside the image's start: the shell that restores the one environment.
_SESSION = Path(__file__).resolve().parents[2] / "session"

_TIME = "%Y-%m-%dT%H:%M:%S%z"
_TEXT: dict[str, object] = {"log_format": "%(asctime)s %(levelname)s jupyter: %(message)s", "log_datefmt": _TIME}
# By a library that Jupyter's own events need; a traceback stays inside its object.
_JSON: dict[str, object] = {
    "()": "pythonjsonlogger.json.JsonFormatter",
    "fmt": "%(asctime)s %(levelname)s %(message)s",
    "datefmt": _TIME,
    "rename_fields": {"asctime": "time", "levelname": "level"},
    "static_fields": {"source": "jupyter"},
}


def _log(log_style: str) -> dict[str, object]:
    """How Jupyter writes its lines, and which it leaves out."""
    handler: dict[str, object] = {"filters": ["noise"]}
    more: dict[str, object] = {"filters": {"noise": {"()": "gpuyard_start.jupyter.log_filter.LogFilter"}}}
    if log_style == "json":
        more["formatters"] = {"json": _JSON}
        handler["formatter"] = "json"
    level = "ERROR" if log_style == "quiet" else "INFO"
    return {**_TEXT, "log_level": level, "logging_config": {**more, "handlers": {"console": handler}}}


def _address(jupyter: Jupyter) -> dict[str, object]:
    """Where the server is found: port, path, certificate and the pages that may talk to it."""
    # Empty: every address of both families.
    address = "" if ports.has_ipv6() else "0.0.0.0"
    found: dict[str, object] = {"ip": address, "port": jupyter.port, "base_url": jupyter.base_url}
    if jupyter.certificate:
        found["certfile"] = str(jupyter.certificate)
        found["keyfile"] = str(jupyter.key or jupyter.certificate)
    if jupyter.origins:
        found["allow_origin_pat"] = f"^({'|'.join(map(re.escape, jupyter.origins))})$"
    return found


def _extensions() -> dict[str, bool]:
    """The extensions to leave out: the GPUs' dashboard can't be loaded beside a driver that does not answer."""
    return {"jupyterlab_nvdashboard": False} if nvml.available() and nvml.fault() else {}


def settings(jupyter: Jupyter, as_root: bool, log_style: str) -> dict[str, dict[str, object]]:
    """What this start decides; the user's own files in ``~/.jupyter`` decide the rest."""
    return {
        "Application": _log(log_style),
        "ServerApp": {
            **_address(jupyter),
            "port_retries": 0,
            "jpserver_extensions": _extensions(),
            "open_browser": False,
            "root_dir": str(places.WORKSPACE),
            "allow_remote_access": True,
            "allow_root": as_root,
            "terminado_settings": {"shell_command": [str(_SESSION)]},
        },
        # Under the provider's own name, which outranks the general one in a user's file.
        "PasswordIdentityProvider": {"token": jupyter.token, "hashed_password": jupyter.password_hash},
        # Memory in the status bar: the container's own, without measuring every second when nobody watches.
        "ResourceUseDisplay": {
            "mem_limit": limits.memory_limit() or 0,
            "enable_prometheus_metrics": False,
            "track_cpu_percent": True,
        },
        # Asking the network for news or packages slows the start and tells others about the user.
        "LabApp": {
            "check_for_updates_class": "jupyterlab.NeverCheckForUpdate",
            "news_url": None,
            "extension_manager": "readonly",
        },
    }


def notice(jupyter: Jupyter) -> str:
    """What the log says about logging in. A token that the user chose is never repeated."""
    scheme = "https" if jupyter.certificate else "http"
    address = f"{jupyter.link or f'{scheme}://127.0.0.1:{jupyter.port}'}{jupyter.base_url}lab"
    if jupyter.token_is_random:
        return f"JupyterLab: {address}?token={jupyter.token}"
    if jupyter.password_hash:
        return f"JupyterLab: {address} (log in with the password whose hash you gave)"
    if jupyter.token:
        return f"JupyterLab: {address} (log in with the token you gave)"
    return f"JupyterLab: {address} WITHOUT a login (JUPYTER_ALLOW_NO_AUTH): who reaches it can run code here"
