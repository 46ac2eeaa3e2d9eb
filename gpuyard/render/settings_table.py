"""The table of a container's settings, generated from the one that its start reads."""

from __future__ import annotations

from entrypoints.gpuyard_start import settings
from gpuyard.render.markdown import markdown


def table() -> str:
    """One row a variable, in the order of the start's own table."""
    return markdown(["variable", "meaning", "default"], [_row(setting) for setting in settings.TABLE])


def _row(setting: settings.Setting[object]) -> list[str]:
    name = f"`{setting.name}`" + (f" (or `{setting.also}`)" if setting.also else "")
    default = setting.shown or (f"`{setting.default}`" if setting.default.startswith("/") else setting.default)
    return [name, setting.help, default or "none"]
