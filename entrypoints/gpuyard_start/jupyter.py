"""JupyterLab's settings, as data in a private file: the token is on no command line and in no environment."""

from __future__ import annotations

from .config import WORKSPACE, Jupyter

_TEXT = {
    "log_format": "%(asctime)s %(levelname)s jupyter: %(message)s",
    "log_datefmt": "%Y-%m-%dT%H:%M:%S%z",
}


def settings(jupyter: Jupyter, as_root: bool, log_style: str) -> dict[str, dict[str, object]]:
    """The content of ``jupyter_server_config.json`` for this start."""
    return {
        "Application": {**_TEXT, "log_level": "ERROR" if log_style == "quiet" else "INFO"},
        "ServerApp": {
            "ip": "0.0.0.0",
            "port": jupyter.port,
            "port_retries": 0,
            "open_browser": False,
            "root_dir": str(WORKSPACE),
            "allow_remote_access": True,
            "allow_root": as_root,
            "terminado_settings": {"shell_command": ["/bin/bash", "-l"]},
        },
        "IdentityProvider": {"token": jupyter.token},
        # Asking the network for news or packages slows the start and tells others about the user.
        "LabApp": {
            "check_for_updates_class": "jupyterlab.NeverCheckForUpdate",
            "news_url": None,
            "extension_manager": "readonly",
        },
    }


def notice(jupyter: Jupyter) -> str:
    """What the log says about logging in. A token that the user chose is never repeated."""
    address = f"http://127.0.0.1:{jupyter.port}/lab"
    if jupyter.token_is_random:
        return f"JupyterLab: {address}?token={jupyter.token}"
    if jupyter.token:
        return f"JupyterLab: {address} (log in with the token you gave)"
    return f"JupyterLab: {address} WITHOUT a login (JUPYTER_ALLOW_NO_AUTH): who reaches it can run code here"
