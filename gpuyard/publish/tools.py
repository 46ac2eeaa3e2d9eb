"""The programs that publishing drives: named when they are missing, installed for the pipeline where that is ours."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

from gpuyard import paths
from gpuyard.engine.daemon import Host
from gpuyard.errors import UserError
from gpuyard.process import log, run

INSTALLER = paths.DOCKER / "install-publish.sh"


def missing(programs: Sequence[str]) -> list[str]:
    """The programs that are not on this machine; each is in a Debian package of its name."""
    return [program for program in programs if not shutil.which(program)]


def ensure(programs: Sequence[str]) -> None:
    """All of them are there; as root on Debian they are installed. Raises UserError with the command otherwise."""
    if not (absent := missing(programs)):
        return
    host = Host.this()
    names = ", ".join(absent)
    if host.forbidden or not host.root or host.system != "debian":
        raise UserError(f"{names}: not installed. On Debian: sudo bash docker/install-publish.sh {' '.join(absent)}")
    log.warning("installing %s from Debian's packages", names)
    run(["bash", str(INSTALLER), *absent], hint=f"{names} could not be installed.")
