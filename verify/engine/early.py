"""Ends a run at once where a required GPU is missing: no other check could change the result."""

from __future__ import annotations

from typing import List

from verify.engine.profiles import Plan
from verify.model import Check, Finding, Status, Verdict
from verify.probes.gpu_signs import any_sign, gpu_signs, no_gpu

REMEDY = "to run it without a GPU: verify --profile cpu"


def without_required_gpu(plan: Plan) -> List[Finding]:
    """The findings of a plan that requires a GPU where none was given; empty where the plan can run."""
    asked = [check.id for check in plan.checks if check.id in plan.required and check.level.on_gpu]
    signs = gpu_signs() if asked else {}
    if not asked or any_sign(signs):
        return []
    absent = no_gpu(signs)
    waits = Verdict(Status.SKIP, "not run: a required GPU is not here", remedy=REMEDY, data={"blocked_by": asked[0]})
    return [_finding(check, plan, absent if check.level.on_gpu else waits) for check in plan.checks]


def _finding(check: Check, plan: Plan, verdict: Verdict) -> Finding:
    return Finding(check.id, check.group, check.level, check.title, verdict, check.id in plan.required, 0.0)
