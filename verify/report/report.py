"""One run's report: the only place that knows the JSON's keys and counts what it holds."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Dict, List, Mapping, Optional, Tuple

from verify.model import Finding, Level, Owner, Status, Verdict
from verify.reference.trace import Trace

SCHEMA = "gpuyard.verify/1"
STATUSES = tuple(s.value for s in (Status.PASS, Status.FAIL, Status.UNKNOWN, Status.SKIP))
"""In the order in which counts are printed."""


class BadReport(ValueError):
    """Data that is not a report; the text is one line that names the first fault."""


@dataclass(frozen=True)
class Host:
    """The machine and the interpreter of a run. ``gpus`` holds a map with a name, or a name, for each GPU."""

    kernel: str
    cpus: int
    memory_bytes: int
    python: str
    torch: str
    gpus: Tuple[Any, ...]
    container: bool

    def gpu_names(self) -> List[str]:
        return [str(gpu.get("name", gpu)) if isinstance(gpu, Mapping) else str(gpu) for gpu in self.gpus]


@dataclass(frozen=True)
class Report:
    """What a run did, where, and what came of it. ``digest`` is set by the host, which alone knows it."""

    started: str
    seconds: float
    command: Tuple[str, ...]
    image: Optional[Mapping[str, Any]]
    digest: Optional[str]
    host: Host
    profile: str
    required: Tuple[str, ...]
    exit_code: int
    verdict: str
    findings: Tuple[Finding, ...]
    training: Tuple[Trace, ...]

    @property
    def counts(self) -> Dict[str, int]:
        """How many findings have each status, by the findings themselves."""
        return {name: sum(f.verdict.status.value == name for f in self.findings) for name in STATUSES}

    @property
    def counted(self) -> str:
        """The counts in words, the same in every place that prints them."""
        required = sum(f.verdict.status is Status.PASS and f.required for f in self.findings)
        of_them = f" ({required} required)" if required else ""
        numbers = [f"{number} {status}" for status, number in self.counts.items()]
        return ", ".join([numbers[0] + of_them, *numbers[1:]])

    @property
    def on_gpu(self) -> bool:
        """Whether a check of this run used a GPU and passed."""
        return any(f.level.on_gpu and f.verdict.status is Status.PASS for f in self.findings)

    def to_dict(self) -> Dict[str, Any]:
        """The data of ``schema.json``."""
        return {
            "schema": SCHEMA,
            "started": self.started,
            "seconds": self.seconds,
            "command": list(self.command),
            "image": dict(self.image) if self.image else None,
            "digest": self.digest,
            "host": {**asdict(self.host), "gpus": list(self.host.gpus)},
            "profile": {"name": self.profile, "required": list(self.required)},
            "result": {"exit_code": self.exit_code, "verdict": self.verdict},
            "counts": self.counts,
            "findings": [_finding_dict(finding) for finding in self.findings],
            "training": [trace.as_json() for trace in self.training],
        }

    @classmethod
    def from_dict(cls, data: Any) -> Report:
        """The report in parsed JSON; its counts are taken from its findings. Raises BadReport."""
        schema = data.get("schema") if isinstance(data, dict) else type(data).__name__
        if schema != SCHEMA:
            raise BadReport(f"expected schema {SCHEMA}, found {schema}")
        try:
            return cls._parse(data)
        except KeyError as error:
            raise BadReport(f"{error} is missing") from error
        except (AttributeError, TypeError, ValueError) as error:
            raise BadReport(str(error)) from error

    @classmethod
    def _parse(cls, data: Mapping[str, Any]) -> Report:
        host = data["host"]
        return cls(
            started=str(data["started"]),
            seconds=float(data["seconds"]),
            command=tuple(data["command"]),
            image=data["image"],
            digest=data["digest"],
            host=Host(**{**{name: host[name] for name in Host.__annotations__}, "gpus": tuple(host["gpus"])}),
            profile=str(data["profile"]["name"]),
            required=tuple(data["profile"]["required"]),
            exit_code=int(data["result"]["exit_code"]),
            verdict=str(data["result"]["verdict"]),
            findings=tuple(_finding(entry) for entry in data["findings"]),
            training=tuple(Trace.from_json(trace) for trace in data["training"]),
        )


def _finding_dict(finding: Finding) -> Dict[str, Any]:
    verdict = finding.verdict
    return {
        "check": finding.check,
        "group": finding.group,
        "level": finding.level.value,
        "where": finding.where,
        "title": finding.title,
        "status": verdict.status.value,
        "required": finding.required,
        "observed": verdict.observed,
        "expected": verdict.expected,
        "remedy": verdict.remedy,
        "owner": verdict.owner.value if verdict.owner else None,
        "seconds": finding.seconds,
        "data": {key: value for key, value in verdict.data.items() if key != "training"},
        "error": finding.error,
    }


def _finding(entry: Mapping[str, Any]) -> Finding:
    verdict = Verdict(
        Status(entry["status"]),
        entry["observed"],
        entry["expected"],
        entry["remedy"],
        Owner(entry["owner"]) if entry["owner"] else None,
        dict(entry["data"]),
    )
    return Finding(
        check=entry["check"],
        group=entry["group"],
        level=Level(entry["level"]),
        title=entry["title"],
        verdict=verdict,
        required=entry["required"],
        seconds=entry["seconds"],
        where=entry["where"],
        error=entry["error"],
    )
