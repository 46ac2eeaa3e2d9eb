"""Every variable that the container's start reads: one table, from which the documentation is generated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from . import values
from .errors import Notice, Refusal

T = TypeVar("T")


class Setting(NamedTuple, Generic[T]):
    """``parse`` gets name and text and raises Refusal; ``shown`` is the default in words where it is not a value.

    ``also``: a second name, of docker-stacks. ``secret``: the value is a credential. ``spent``: its work is done when
    the start is over, so sessions and kernels don't get it.
    """

    name: str
    parse: Callable[[str, str], T]
    default: str
    help: str
    shown: str = ""
    also: str = ""
    secret: bool = False
    spent: bool = False

    def given(self, env: dict[str, str]) -> tuple[str, str]:
        """The name that was used and its text, empty if unset. Refuses two names that disagree."""
        found = [(name, env[name].strip()) for name in (self.name, self.also) if env.get(name, "").strip()]
        if len({text for _, text in found}) > 1:
            pairs = " and ".join(f"{name}={text}" for name, text in found)
            raise Refusal("settings-conflict", f"{pairs} disagree: give one of them")
        return found[0] if found else (self.name, "")

    def read(self, env: dict[str, str]) -> T:
        """The value, or the default. Raises Refusal."""
        name, text = self.given(env)
        return self.parse(name, text or self.default)


# Jupyter.
TOKEN = Setting(
    "JUPYTER_TOKEN", values.text, "", "JupyterLab's token; an empty one is refused",
    shown="random, shown once in the log", secret=True, spent=True,
)  # fmt: skip
TOKEN_FILE = Setting("JUPYTER_TOKEN_FILE", values.file, "", "a mounted file that holds the token", spent=True)
NO_AUTH = Setting("JUPYTER_ALLOW_NO_AUTH", values.flag, "no", "`yes` lets `JUPYTER_TOKEN=` mean no login at all")
PASSWORD_HASH = Setting(
    "JUPYTER_PASSWORD_HASH", values.text, "", "what `jupyter lab password` writes, instead of a token",
    secret=True, spent=True,
)  # fmt: skip
JUPYTER_PORT = Setting("JUPYTER_PORT", values.port, "8888", "JupyterLab's port inside the container")
BASE_URL = Setting("JUPYTER_BASE_URL", values.text, "/", "the path behind a proxy")
ORIGINS = Setting(
    "JUPYTER_ALLOW_ORIGIN", values.items, "",
    "addresses whose pages may talk to the server, separated by commas; `*` is refused",
)  # fmt: skip
CERTFILE = Setting("JUPYTER_CERTFILE", values.file, "", "a mounted certificate: JupyterLab then uses TLS")
KEYFILE = Setting("JUPYTER_KEYFILE", values.file, "", "the certificate's key", shown="in the certificate's file")
LINK = Setting(
    "JUPYTER_LINK", values.text, "", "the address that people type, for the link in the log",
    shown="`http://127.0.0.1:PORT`", spent=True,
)  # fmt: skip
# SSH.
KEY = Setting(
    "SSH_PUBLIC_KEY", values.text, "",
    "keys that may log in, one a line; or mount `/etc/gpuyard/authorized_keys` or `~/.ssh/authorized_keys`, of any"
    " owner and mode",
    shown="none: SSH is off", spent=True,
)  # fmt: skip
OTHER_KEY = Setting("PUBLIC_KEY", values.text, "", "more keys: the name that some clouds set", spent=True)
SSH_PORT = Setting("GPUYARD_SSH_PORT", values.port, "2222", "sshd's port, in addition to 22 where that is possible")
SSH_STRICT = Setting(
    "GPUYARD_SSH_STRICT", values.flag, "no",
    "`yes` accepts only clients with post-quantum key exchange: curve25519 alone is refused",
)  # fmt: skip
HOST_KEYS = Setting(
    "GPUYARD_HOST_KEYS", values.folder("/mnt/keys"), "/var/lib/gpuyard/ssh",
    "folder of the host key, made at the first start; a volume there keeps it", spent=True,
)  # fmt: skip
# The container.
SERVICES = Setting(
    "GPUYARD_SERVICES", values.items, "", "`jupyter`, `ssh`, `jupyter,ssh` or `none`, also beside a command",
    shown="both without a command, none with one",
)  # fmt: skip
UID = Setting(
    "GPUYARD_UID", values.user_number, "", "with `--user root`: the uid that the container drops to",
    shown="1000", also="NB_UID",
)  # fmt: skip
GID = Setting("GPUYARD_GID", values.user_number, "", "the same for the gid", shown="1000", also="NB_GID")
USER = Setting(
    "GPUYARD_USER", values.text, "", "with `--user root`: another name for `trainer`", shown="trainer", also="NB_USER"
)
CHOWN = Setting(
    "GPUYARD_CHOWN", values.items, "",
    "with `--user root`: mounted folders to give to that user; the folder itself, not what is in it",
)  # fmt: skip
ALLOW_ROOT = Setting("GPUYARD_ALLOW_ROOT", values.flag, "no", "`yes` lets `--user root` stay root")
VENV = Setting(
    "GPUYARD_VENV", values.folder("/workspace/.venv"), "",
    "a folder on a volume for packages that you add with pip, so that they outlive the container",
)  # fmt: skip
CACHE = Setting(
    "GPUYARD_CACHE", values.folder("/mnt/cache"), "",
    "a folder on a volume for downloads and compiled code (Hugging Face, torch, triton)",
)  # fmt: skip
CA = Setting("GPUYARD_CA", values.file, "", "a mounted file of your company's certificates, trusted in addition")
PASS = Setting(
    "GPUYARD_PASS", values.items, "",
    "variables with secret-looking names, such as `HF_TOKEN`, that sessions and kernels get all the same", spent=True,
)  # fmt: skip
LOG = Setting("GPUYARD_LOG", values.one_of("text", "json", "quiet"), "text", "`text`, `json` or `quiet`; on stderr")

TABLE: tuple[Setting[Any], ...] = (
    *(TOKEN, TOKEN_FILE, NO_AUTH, PASSWORD_HASH, JUPYTER_PORT, BASE_URL, ORIGINS, CERTFILE, KEYFILE, LINK),
    *(KEY, OTHER_KEY, SSH_PORT, SSH_STRICT, HOST_KEYS),
    *(SERVICES, UID, GID, USER, CHOWN, ALLOW_ROOT, VENV, CACHE, CA, PASS, LOG),
)

# Variables of docker-stacks and Kubeflow that do nothing here, and what does.
FOREIGN = {
    "NB_PREFIX": "JUPYTER_BASE_URL",
    "NB_UMASK": "a hook or 'umask' in the command",
    "NOTEBOOK_ARGS": "'jupyter lab --OPTION=VALUE' as the command",
    "NOTEBOOK_DIR": "a volume at /workspace",
    "JUPYTER_PASSWORD": "JUPYTER_PASSWORD_HASH",
    "JUPYTER_ENABLE_LAB": "nothing: JupyterLab is what starts",
    "DOCKER_STACKS_JUPYTER_CMD": "nothing: JupyterLab is what starts",
    "RESTARTABLE": "nothing: services are restarted anyway",
    "CHOWN_HOME": "GPUYARD_CHOWN=/home/trainer",
    "CHOWN_HOME_OPTS": "GPUYARD_CHOWN",
    "CHOWN_EXTRA": "GPUYARD_CHOWN",
    "CHOWN_EXTRA_OPTS": "GPUYARD_CHOWN",
    "GRANT_SUDO": "docker exec -u 0",
    "GEN_CERT": "JUPYTER_CERTFILE",
}
_OFF = ("", "no", "false", "0")
_OURS = ("GPUYARD_", "JUPYTER_", "SSH_", "PUBLIC_KEY")


def foreign(env: dict[str, str]) -> Notice | None:
    """The line about variables that other images know and this one does not; None if none is set."""
    found = [f"{name} ({use})" for name, use in FOREIGN.items() if env.get(name, "").strip().lower() not in _OFF]
    if not found:
        return None
    return Notice(
        "setting-foreign", f"these variables have no effect in this image; use what follows: {', '.join(found)}"
    )


def unknown(env: dict[str, str]) -> list[Notice]:
    """A warning for each variable whose name is nearly that of a setting: it would be ignored in silence."""
    known = [name for setting in TABLE for name in (setting.name, setting.also) if name]
    suspects = sorted(name for name in set(env) - set(known) - set(FOREIGN) if name.startswith(_OURS))
    if not suspects:
        return []
    # Late: most starts have no such variable.
    import difflib

    near = {name: difflib.get_close_matches(name, known, n=1, cutoff=0.85) for name in suspects}
    return [
        Notice("setting-unknown", f"{name} is not a setting and has no effect: did you mean {found[0]}?")
        for name, found in near.items()
        if found
    ]
