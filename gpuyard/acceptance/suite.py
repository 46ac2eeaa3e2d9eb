"""All checks from outside: their list, their selection and their run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from gpuyard.acceptance import config, content, host, jupyter, life, ssh
from gpuyard.acceptance.world import Outside, World
from gpuyard.errors import UsageError
from verify.engine import registry
from verify.engine.run import INTERRUPTED, run_checks
from verify.model import Check, Claims, Finding, Level

CHECKS: list[Outside] = [
    *content.CHECKS,
    *config.CHECKS,
    *host.CHECKS,
    *life.FIRST,
    *ssh.CHECKS,
    *jupyter.CHECKS,
    *life.LAST,
]
"""In the order of the chain; the last one ends the container."""


@dataclass(frozen=True)
class Selection:
    """What a run checks: names for the suite inside (None: all; empty: nothing) and checks from outside."""

    inside: tuple[str, ...] | None
    require: tuple[str, ...]
    outside: tuple[Outside, ...]


def choose(only: Iterable[str], require: Iterable[str], services: tuple[str, ...]) -> Selection:
    """Divides names between inside and outside; a level or group may exist on both sides.

    Checks outside are all required. Raises UsageError for a name that neither side knows.
    """
    only, require = tuple(only), tuple(require)
    inside, outside = registry.names(registry.CHECKS), _names(CHECKS)
    for name in (*only, *require):
        if name not in inside | outside:
            raise UsageError("check-unknown", registry.unknown_text("check or group", name, inside | outside))
    fitting = [check for check in CHECKS if check.fits(services)]
    chosen = _with_needs(fitting, {*only, *require}) if only else fitting
    wanted = tuple(name for name in only if name in inside) if only else None
    return Selection(wanted, tuple(name for name in require if name in inside), tuple(chosen))


def _names(checks: Iterable[Outside]) -> set[str]:
    return {name for check in checks for name in (check.id, check.group, check.level.value)}


def _with_needs(checks: list[Outside], names: set[str]) -> list[Outside]:
    ids = {check.id for check in checks if _names([check]) & names}
    for check in reversed(checks):
        if check.id in ids:
            ids.update(check.needs)
    return [check for check in checks if check.id in ids]


def run(
    checks: Iterable[Outside], level: Level, world: World, claims: Claims, tell: Callable[[str], None]
) -> list[Finding]:
    """Runs the chosen checks of one level; the findings say that they were made from outside.

    Raises KeyboardInterrupt if the user interrupted them: an interrupted run has no report.
    """
    bound = [check.bind(world) for check in checks if check.level is level]

    def show(number: int, total: int, check: Check) -> None:
        tell(f"outside, {level.value} {number}/{total}: {check.title}")

    findings = run_checks(bound, {check.id for check in bound}, claims, show)
    if any(finding.verdict.observed == INTERRUPTED for finding in findings):
        raise KeyboardInterrupt
    return [replace(finding, where="outside") for finding in findings]
