"""A virtual environment of the user's own over the image's.

What is installed goes there, under the image's constraints; everything else is found in the image.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from pathlib import Path

from .. import places, settings
from ..errors import Refusal
from ..folder import make_folder

IMAGE = Path("/opt/venv")
SYSTEM_PYTHON = "/usr/bin/python3"
# Programs of the image that install packages or run the user's code: copied, so that they run in the environment.
_SCRIPTS = ("pip", "pip3", "torchrun", "accelerate", "accelerate-launch", "ipython", "ipython3")


def wanted(env: dict[str, str], given: tuple[Path, ...] = ()) -> Path | None:
    """The folder that was asked for. Refuses one that can't be used; changes nothing. ``given``: will be ours."""
    folder = settings.VENV.read(env)
    if folder is None:
        return None
    if folder == IMAGE or IMAGE in folder.parents or folder == Path("/"):
        raise Refusal(
            "venv-unusable", f"GPUYARD_VENV is '{folder}', which is the image's own: choose a folder on a volume"
        )
    places.refuse_unwritable(settings.VENV.name, folder, given)
    _refuse_other_python(folder)
    return folder


def _site(folder: Path) -> Path:
    """Where packages of the environment lie; ``lib/python3.X`` is the image's own."""
    return folder / next(IMAGE.glob("lib/python*/site-packages")).relative_to(IMAGE)


def _refuse_other_python(folder: Path) -> None:
    if not folder.exists() or _site(folder).is_dir() or not any(folder.iterdir()):
        return
    if not (folder / "pyvenv.cfg").exists():
        raise Refusal(
            "venv-unusable", f"GPUYARD_VENV is '{folder}', which has other files: expected an empty or a new folder"
        )
    raise Refusal(
        "venv-other-python",
        f"GPUYARD_VENV is '{folder}', which was made for another Python than this image's"
        f" {_site(folder).parent.name}: choose another folder, or remove that one",
    )


def _write(path: Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    path.chmod(mode)


def _add_scripts(folder: Path) -> None:
    for script in (IMAGE / "bin" / name for name in _SCRIPTS):
        if script.is_file() and not os.path.lexists(folder / "bin" / script.name):
            _, _, code = script.read_text("utf-8").partition("\n")
            _write(folder / "bin" / script.name, f"#!{folder / 'bin' / 'python'}\n{code}", 0o755)


def make(folder: Path) -> bool:
    """Makes the environment where there is none yet; whether it did."""
    if _site(folder).is_dir():
        # One that an older image made may lack some.
        with contextlib.suppress(OSError):
            _add_scripts(folder)
        return False
    command = [SYSTEM_PYTHON, "-m", "venv", "--without-pip", str(folder)]
    told = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if told.returncode != 0:
        reason = (told.stderr or told.stdout).strip().splitlines()
        raise Refusal("venv-failed", f"{folder} can't be made: {reason[-1] if reason else told.returncode}", code=1)
    python = folder / "bin" / "python"
    _write(_site(folder) / "image.pth", f"import site; site.addsitedir({str(_site(IMAGE))!r})\n")
    _add_scripts(folder)
    kernel = {
        "argv": [str(python), "-Xfrozen_modules=off", "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "Python 3 (ipykernel)",
        "language": "python",
        "metadata": {"debugger": True},
    }
    _write(folder / "share" / "jupyter" / "kernels" / "python3" / "kernel.json", json.dumps(kernel, indent=1) + "\n")
    return True


def temporary() -> Path | None:
    """An environment that ends with the container, made for a user who can't install into the image's, or None.

    Where nothing can be executed, compiled packages would not load: there is none then.
    """
    if os.access(_site(IMAGE), os.W_OK | os.X_OK):
        return None
    with contextlib.suppress(OSError, Refusal):
        folder = make_folder() / "venv"
        if not os.statvfs(folder.parent).f_flag & os.ST_NOEXEC:
            make(folder)
            return folder
    return None


def entered(env: dict[str, str], folder: Path) -> dict[str, str]:
    """The variables that activate it."""
    places = f"{folder}/share/jupyter" + (f":{env['JUPYTER_PATH']}" if env.get("JUPYTER_PATH") else "")
    path = f"{folder}/bin:{env.get('PATH', os.defpath)}"
    return {**env, "VIRTUAL_ENV": str(folder), "PATH": path, "JUPYTER_PATH": places}
