"""One folder on a volume for everything that is downloaded or compiled."""

from __future__ import annotations

from pathlib import Path

from .. import places, settings

# What each program reads; a value of the user's own stays. pip, uv and Matplotlib follow the first.
PLACES = {
    "XDG_CACHE_HOME": ".",
    "HF_HOME": "huggingface",
    "TORCH_HOME": "torch",
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TRITON_CACHE_DIR": "triton",
}


def wanted(env: dict[str, str], given: tuple[Path, ...] = ()) -> Path | None:
    """The folder that was asked for. Refuses one that can't be used; changes nothing. ``given``: will be ours."""
    if (folder := settings.CACHE.read(env)) is not None:
        places.refuse_unwritable(settings.CACHE.name, folder, given)
    return folder


def entered(env: dict[str, str], folder: Path) -> dict[str, str]:
    """The environment in which every cache lies there. Makes the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    return {**{name: str(folder / place) for name, place in PLACES.items()}, **env}
