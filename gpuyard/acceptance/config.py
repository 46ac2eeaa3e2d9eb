"""The image's configuration: environment, labels, user, ports and how it starts."""

from __future__ import annotations

import re

from gpuyard.acceptance.world import Outside, World
from verify.model import Claims, Facts, Level, Owner, Status, Verdict

TUNING = re.compile(r"^(NCCL_|OMP_|MKL_|CUDA_|CUBLAS_|CUDNN_|TORCH_NCCL_|PYTORCH_(CUDA_)?ALLOC_CONF$|LD_)")
"""Baked values of these beat what a user sets under Slurm and Kubernetes, or break the loader."""
NVIDIA = {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}
SHOWN = 4
USER, WORKDIR = "1000:1000", "/workspace"
ENTRYPOINT = ["/usr/bin/tini", "-g", "--", "/opt/gpuyard/entrypoints/start"]


def probe_config(world: World) -> Facts:
    """The image's configuration, from the engine."""
    return dict(world.config)


def evaluate_env(facts: Facts, claims: Claims) -> Verdict:
    """Fails on missing or wrong variables, and on tuning that belongs to whoever starts the container."""
    env = dict(item.partition("=")[::2] for item in facts.get("Env") or [])
    torch = str(claims.image["versions"]["torch"]).split("+")[0]
    family = str(claims.image["versions"]["cuda"]).split(".")[0]
    faults = [f"{name}={env.get(name)!r}, not {value!r}" for name, value in NVIDIA.items() if env.get(name) != value]
    faults += [f"{name} is baked in" for name in sorted(env) if TUNING.match(name)]
    if not env.get("PATH", "").startswith(env.get("VIRTUAL_ENV", "?") + "/bin:"):
        faults.append(f"PATH does not begin with the venv: {env.get('PATH')!r}")
    if env.get("PYTORCH_VERSION", "").split("+")[0] != torch:
        faults.append(f"PYTORCH_VERSION={env.get('PYTORCH_VERSION')!r}, not {torch!r}")
    if not env.get("NVIDIA_REQUIRE_CUDA", "").startswith(f"cuda>={family}."):
        faults.append(f"NVIDIA_REQUIRE_CUDA={env.get('NVIDIA_REQUIRE_CUDA')!r}, not cuda>={family}.…")
    if env.get("PYTHONNOUSERSITE") != "1":
        faults.append("PYTHONNOUSERSITE is not 1: a home from the host can shadow the lock")
    expected = "the venv first on PATH, NVIDIA's variables, no tuning (NCCL_*, OMP_*, CUDA_*, LD_*)"
    return _judge(faults, f"{len(env)} variables", expected, "correct ENV in images/ and build again")


def evaluate_labels(facts: Facts, claims: Claims) -> Verdict:
    """Fails on every label that is missing or differs from the catalogue."""
    wanted, found = claims.image["labels"], facts.get("Labels") or {}
    faults = [f"{name}={found.get(name)!r}, not {wanted[name]!r}" for name in wanted if found.get(name) != wanted[name]]
    return _judge(faults, f"{len(wanted)} labels agree", "what the catalogue says", "build again: gpuyard build")


def evaluate_start(facts: Facts, claims: Claims) -> Verdict:
    """Fails unless the image starts as the catalogue and the design say."""
    services = claims.image["services"]
    seen = {
        "user": (facts.get("User"), USER),
        "working folder": (facts.get("WorkingDir"), WORKDIR),
        "entrypoint": (facts.get("Entrypoint"), ENTRYPOINT),
        "command": (facts.get("Cmd") or None, None),
        "ports": (sorted(facts.get("ExposedPorts") or {}), sorted(f"{port}/tcp" for port in claims.image["ports"])),
        "health check": (_has_health(facts), bool(services)),
    }
    faults = [f"{what} is {is_!r}, not {should!r}" for what, (is_, should) in seen.items() if is_ != should]
    observed = f"user {USER}, ports {', '.join(str(port) for port in claims.image['ports']) or 'none'}"
    return _judge(faults, observed, "as the catalogue says", "correct the Dockerfile in images/ and build again")


def _has_health(facts: Facts) -> bool:
    test = (facts.get("Healthcheck") or {}).get("Test") or ["NONE"]
    return bool(test[0] != "NONE")


def _judge(faults: list[str], observed: str, expected: str, remedy: str) -> Verdict:
    if faults:
        more = [f"and {len(faults) - SHOWN} more"] if len(faults) > SHOWN else []
        return Verdict(Status.FAIL, "; ".join(faults[:SHOWN] + more), expected, remedy, Owner.IMAGE)
    return Verdict(Status.PASS, observed, expected)


CHECKS = [
    Outside("config-env", "config", Level.IMAGE, "Environment of the image", probe_config, evaluate_env),
    Outside("config-labels", "config", Level.IMAGE, "Labels equal the catalogue", probe_config, evaluate_labels),
    Outside("config-start", "config", Level.IMAGE, "User, ports and entrypoint", probe_config, evaluate_start),
]
