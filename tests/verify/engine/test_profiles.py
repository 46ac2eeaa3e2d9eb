"""What a run selects and requires."""

from __future__ import annotations

import pytest

from tests.verify.suite import CLAIMS, NO_CLAIMS, fake
from verify.engine.profiles import Plan, UnknownProfile, find_profile, plan_only, plan_profile
from verify.engine.registry import CHECKS, UnknownName, at_most, resolve
from verify.model import Check, Claims, Level

SMALL = [
    fake("files", level=Level.IMAGE, group="image"),
    fake("size", level=Level.CONTAINER, group="shm"),
    fake("loader", group="shm", needs=("size",)),
    fake("rests", needs=("size",)),
    fake("cpu-work"),
    fake("one-gpu", level=Level.GPU, group="gpu"),
    fake("many", level=Level.MULTI_GPU, group="nccl", needs=("one-gpu",)),
]


def ids(plan: Plan) -> list[str]:
    return [check.id for check in plan.checks]


def plan(name: str, gpus: int = 0, claims: Claims = CLAIMS, require: tuple[str, ...] = ()) -> Plan:
    return plan_profile(find_profile(name), SMALL, claims, require, gpus)


def test_the_default_runs_everything_and_requires_what_fits() -> None:
    """Without a GPU its checks run and skip; what depends on the start is advice."""
    assert len(plan("default").checks) == len(SMALL)
    assert plan("default").required == {"files", "cpu-work"}


@pytest.mark.parametrize(("gpus", "more"), [(1, {"one-gpu"}), (2, {"one-gpu", "many"})])
def test_a_sign_of_a_gpu_makes_its_checks_required(gpus: int, more: set[str]) -> None:
    """A broken driver fails the default run; several GPUs bring their own checks."""
    assert plan("default", gpus).required == {"files", "cpu-work"} | more


@pytest.mark.parametrize(
    ("name", "required"),
    [
        ("image", {"files"}),
        ("cpu", {"files", "size", "loader", "rests", "cpu-work"}),
        ("gpu", {"files", "size", "loader", "rests", "cpu-work", "one-gpu"}),
        ("multi-gpu", {check.id for check in SMALL}),
        ("train", {"size", "loader"}),
    ],
)
def test_a_named_profile_requires_all_it_selects(name: str, required: set[str]) -> None:
    """Asked for by name, shared memory is required."""
    assert plan(name).required == required == set(ids(plan(name)))


def test_require_adds_to_a_profile_with_its_needs() -> None:
    """--require nccl on an image profile brings the check and what it needs, both required."""
    assert plan("image", require=("nccl",)).required == {"files", "one-gpu", "many"}


def test_the_images_own_list_is_required_by_default() -> None:
    """A group that the image names is required; a level means it without advice; strangers are absent."""
    assert plan("default", claims=Claims({"required": ["shm"]}, {})).required >= {"size", "loader"}
    own = plan("default", claims=Claims({"required": ["container", "cpu", "no-such"]}, {}))
    assert own.required == {"files", "cpu-work"}
    assert own.absent == ("no-such",)


def test_only_requires_what_is_named_and_runs_what_it_needs() -> None:
    """--only loader runs size first, and both must pass."""
    only = plan_only(SMALL, ["loader"], [])
    assert ids(only) == ["size", "loader"]
    assert only.required == {"size", "loader"}


def test_names_are_ids_groups_and_levels() -> None:
    """gpu is a group and a level; an unknown name is refused with the nearest."""
    assert resolve(SMALL, ["gpu"]) == ["one-gpu"]
    assert resolve(SMALL, ["container", "nccl"]) == ["size", "many"]
    with pytest.raises(UnknownName, match="loader"):
        resolve(SMALL, ["loadr"])
    with pytest.raises(UnknownProfile, match="multi-gpu"):
        find_profile("multigpu")


def test_what_disturbs_others_runs_in_full_or_by_its_name() -> None:
    """A device-side assert logs an Xid and hurts other clients of MPS: neither a group nor a level means it."""
    checks = [*SMALL, fake("assert", level=Level.GPU, group="gpu", disturbs=True, needs=("one-gpu",))]
    for profile in ("default", "gpu", "multi-gpu"):
        assert "assert" not in ids(plan_profile(find_profile(profile), checks, CLAIMS, ("gpu",), 1))
    full = plan_profile(find_profile("full"), checks, CLAIMS, (), 1)
    assert "assert" in full.required
    assert full.required - {"assert"} == plan_profile(find_profile("default"), checks, CLAIMS, (), 1).required
    assert ids(plan_only(checks, ["gpu"], [])) == ["one-gpu"]
    assert plan_only(checks, ["assert"], []).required == {"one-gpu", "assert"}
    assert [check.id for check in CHECKS if check.disturbs] == ["cuda-errors"]


def test_names_that_were_asked_for_are_kept() -> None:
    """They stay required where a check makes no sense on this hardware."""
    assert plan_only(SMALL, ["loader"], ["gpu"]).named == {"loader", "gpu"}
    assert plan("default", require=("size",)).named == {"size"}


def test_a_level_leaves_out_what_needs_more() -> None:
    """--level container keeps image and container, and what --require names; nothing is absent for it."""
    assert at_most(SMALL, Level.CONTAINER) == ["files", "size"]
    own = Claims({"required": ["cpu", "image"]}, {})
    small = plan_profile(find_profile("default"), SMALL, own, ["one-gpu"], 0, Level.CONTAINER)
    assert ids(small) == ["files", "size", "one-gpu"]
    assert small.required == {"files", "one-gpu"}
    assert small.absent == ()


@pytest.mark.parametrize("check", [c for c in CHECKS if c.needs_claims], ids=lambda check: check.id)
def test_outside_an_image_a_check_of_claims_is_skipped(check: Check) -> None:
    """Each check that is not required outside an image does skip there, with the reason."""
    verdict = check.evaluate(check.probe(), NO_CLAIMS)
    assert verdict.status.value == "skip"
    assert "not inside a gpuyard image" in verdict.observed


def test_every_other_check_means_something_without_claims() -> None:
    """No check but those listed skips for want of claims."""
    plain = [c for c in CHECKS if c.isolation.value == "none" and not c.needs_claims]
    assert plain
    for check in plain:
        assert "not inside" not in check.evaluate(check.probe(), NO_CLAIMS).observed, check.id


def test_a_package_that_nobody_claims_and_that_is_missing_is_not_required(monkeypatch: pytest.MonkeyPatch) -> None:
    """Claimed it must be there; installed it must work."""
    from verify.engine.registry import CHECKS as REAL

    def required(claims: Claims) -> bool:
        return "train-gpt2" in plan_profile(find_profile("cpu"), REAL, claims, (), 0).required

    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    assert not required(NO_CLAIMS)
    assert required(Claims({"packages": {"transformers": "9.9.9"}}, {}))
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: object())
    assert required(NO_CLAIMS)
