"""The command line of the suite; see ``verify --help``."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import time
from datetime import datetime, timezone
from types import FrameType
from typing import Iterator, List, NoReturn, Optional, Sequence

from verify import cases
from verify.claims import BadClaims, load_claims
from verify.engine import registry
from verify.engine.causes import unrequired
from verify.engine.early import without_required_gpu
from verify.engine.gpus import count_gpus
from verify.engine.profiles import PROFILES, Plan, UnknownProfile, find_profile, plan_only, plan_profile
from verify.engine.run import run_checks
from verify.engine.verdict import NOT_RUN, PASSED, USAGE, exit_code, verdict_text
from verify.engine.watch import watch
from verify.environment import page
from verify.explain import explain, list_checks
from verify.model import Claims, Finding, Level, Status, Verdict
from verify.report.output import UnwritableReport, open_output
from verify.report.results import build

EPILOG = """exit codes:
  0  every required check passed
  1  a required check failed
  2  usage error; nothing was run
  3  a required check could not run (skipped, unknown or absent)

also:
  verify explain ID    what a check asserts, why, and what repairs it; or what the id of an error means
  verify env           one page about this machine to paste into a bug report, secrets masked

profiles:
""" + "\n".join(f"  {profile.name:10} {profile.purpose}" for profile in PROFILES)


LEVELS = [level.value for level in Level]


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"verify: error[verify-usage]: {message}\n")


def main(arguments: Sequence[str]) -> int:
    """Run the suite or one of its side commands; returns the exit code."""
    try:
        if arguments[:1] == ["explain"]:
            return _explain(arguments[1:])
        if arguments[:1] == ["env"]:
            print(page(load_claims()))
            return PASSED
        options = parser().parse_args(arguments)
        if options.watch is not None:
            return watch(registry.CHECKS, load_claims(), options.watch)
        if options.list or options.cases:
            return _list(options)
        return _run(options, arguments)
    except (registry.UnknownName, UnknownProfile, UnwritableReport) as error:
        print(f"verify: error[{error.id}]: {error}", file=sys.stderr)
        return USAGE
    except BadClaims as error:
        print(f"verify: error[{error.id}]: {error}", file=sys.stderr)
        return NOT_RUN
    except BrokenPipeError:
        _drop_stdout()
        return PASSED
    except KeyboardInterrupt:
        print("verify: interrupted", file=sys.stderr)
        return NOT_RUN


def parser() -> argparse.ArgumentParser:
    """The options of ``verify``."""
    parser = _Parser(
        prog="verify",
        description="Finds the first broken link between the host's driver and a training step that learns.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--profile", metavar="NAME", help="which checks to run and which must pass (default: default)")
    add("--only", metavar="IDS", action="append", help="run and require these checks or groups, comma-separated")
    add("--require", metavar="IDS", action="append", help="require these as well, comma-separated")
    add("--level", metavar="LEVEL", type=_level, help=f"leave out checks above this level: {', '.join(LEVELS)}")
    add("--quick", action="store_true", help="the same as --profile quick: half a second, without torch and cuInit")
    add(
        "--watch",
        metavar="S",
        nargs="?",
        type=_seconds,
        const=30.0,
        help="look every S seconds; report when a GPU is lost",
    )
    add("--list", action="store_true", help="print the checks and run nothing")
    add("--cases", action="store_true", help="with --list: the known ways to break, and which check sees each")
    add("--json", metavar="PATH", help="write the report as JSON; - writes it to stdout, and nothing else there")
    add("--junit", metavar="PATH", help="write the report as JUnit XML")
    add("--html", metavar="PATH", help="write the report as one HTML page")
    add("--quiet", action="store_true", help="print the verdict only")
    add("--no-color", action="store_true", help="no colours (as with NO_COLOR set, or when stdout is not a terminal)")
    return parser


def _level(text: str) -> Level:
    if text not in LEVELS:
        raise argparse.ArgumentTypeError(registry.unknown_text("level", text, LEVELS))
    return Level(text)


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < 86400:
        raise ValueError(text)
    return value


def _names(values: Optional[List[str]]) -> List[str]:
    return [name.strip() for value in values or [] for name in value.split(",") if name.strip()]


def _explain(arguments: Sequence[str]) -> int:
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(
            "verify: error[verify-usage]: expected one id: verify explain ID (verify --list shows the checks)",
            file=sys.stderr,
        )
        return USAGE
    print(explain(registry.CHECKS, arguments[0]))
    return PASSED


def _list(options: argparse.Namespace) -> int:
    if options.cases:
        print(cases.table())
        return PASSED
    plan = _plan(options, load_claims())
    print(list_checks(plan.checks, plan.required))
    return PASSED


def _plan(options: argparse.Namespace, claims: Claims) -> Plan:
    """The plan for the options; names that do not exist raise before anything runs."""
    only, require = _names(options.only), _names(options.require)
    profile = find_profile(options.profile or ("quick" if options.quick else "default"))
    if only:
        return plan_only(registry.CHECKS, only, require)
    return plan_profile(profile, registry.CHECKS, claims, require, count_gpus(), options.level)


def _run(options: argparse.Namespace, arguments: Sequence[str]) -> int:
    claims = load_claims()
    plan = _plan(options, claims)
    output = open_output(options)
    started, clock = datetime.now(timezone.utc), time.monotonic()
    with _terminable():
        findings = without_required_gpu(plan) or run_checks(plan.checks, set(plan.required), claims, output.tell)
    findings = unrequired(findings, plan.named)
    findings += [_absent(name) for name in plan.absent]
    code, words = exit_code(findings), verdict_text(findings)
    report = build(
        findings,
        started.isoformat(timespec="seconds").replace("+00:00", "Z"),
        time.monotonic() - clock,
        ["verify", *arguments],
        claims,
        plan.profile,
        {*plan.required, *plan.absent},
        code,
        words,
    )
    with contextlib.suppress(BrokenPipeError):
        output.write(report)
        return code
    _drop_stdout()
    return code


def _drop_stdout() -> None:
    """Discard further output once its reader has left, so that Python's flush at exit raises nothing."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _absent(name: str) -> Finding:
    """A finding for a name that the image requires and this suite does not have."""
    verdict = Verdict(
        Status.UNKNOWN,
        f"the image requires {name!r}, but this suite has no such check or group",
        "every required check exists",
        "rebuild the image: its image.json and its suite are of different versions",
    )
    return Finding(name, "absent", Level.IMAGE, "Required check is absent", verdict, True, 0.0)


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM end the checks as Ctrl-C does, and restore its handler afterwards."""
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(_number: int, _frame: Optional[FrameType]) -> None:
    raise KeyboardInterrupt
