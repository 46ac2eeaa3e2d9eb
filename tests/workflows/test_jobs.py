"""What the forge makes of the workflows: which jobs run after which results, and what passes from job to job."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner

from gpuyard.commands.tree import application
from tests.workflows.expressions import Contexts, Parser, condition, expressions, needs, value, walk
from tests.workflows.test_workflows import FILES, load

Workflow = dict[str, Any]
PLAIN: dict[str, Any] = {
    "vars": {},
    "secrets": {"GITHUB_TOKEN": "token"},
    "github": {"repository": "Lab/Images", "actor": "somebody", "ref": "refs/heads/main", "event_name": "push"},
}


def listed(monkeypatch: pytest.MonkeyPatch, **env: str) -> dict[str, str]:
    """The outputs that the step ``list`` really writes."""
    for name in ("REGISTRY", "GITHUB_REPOSITORY"):
        monkeypatch.delenv(name, raising=False)
    for name, given in env.items():
        monkeypatch.setenv(name, given)
    said = CliRunner().invoke(application(), ["list", "--json", "--github"]).stdout
    return {name: text for name, _, text in (line.partition("=") for line in said.splitlines())}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'a' == 'A'", True),
        ("vars.X == ''", True),
        ("vars.X || 'b'", "b"),
        ("!('a' != 'b') || 'it''s'", "it's"),
        ("github.actor == 'x' && 'y' || 'z'", "z"),
        ("fromJSON('[1]')", [1]),
    ],
)
def test_an_expression_has_the_forges_value(text: str, expected: object) -> None:
    """Strings compare without case; ``||`` gives the first true value."""
    assert Parser(text, Contexts(PLAIN)).value() == expected


@pytest.mark.parametrize("text", ["hashFiles('x')", "vars.X + 1", "nobody.knows", "('a'"])
def test_what_the_evaluator_does_not_know_is_an_error(text: str) -> None:
    """A new construct is noticed, not passed over."""
    with pytest.raises((KeyError, ValueError, AssertionError)):
        Parser(text, Contexts(PLAIN)).value()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_expression_can_be_evaluated(file: Any) -> None:
    """Each names contexts that exist."""
    given = {**PLAIN, "needs": {}, "matrix": {}, "steps": {}}
    contexts = Contexts(given)
    found = [text for text in expressions(load(file.stem)) if "fromJSON" not in text]
    assert found
    for text in found:
        Parser(text, contexts).value()


GATE = [
    # GPU configured, result of build, of gpu (when it runs), expected of publish
    (False, "success", "success", "success"),
    (True, "success", "success", "success"),
    (True, "success", "failure", "skipped"),
    (True, "success", "cancelled", "skipped"),
    (True, "failure", "success", "skipped"),
    (True, "cancelled", "success", "skipped"),
    (False, "failure", "success", "skipped"),
    (False, "cancelled", "success", "skipped"),
]


@pytest.mark.parametrize(("gpu", "build", "on_gpu", "expected"), GATE)
def test_nothing_is_published_but_after_success(gpu: bool, build: str, on_gpu: str, expected: str) -> None:
    """A GPU job that is configured must have succeeded; one that is not is skipped."""
    outcomes = {"build": build, "gpu": on_gpu}
    values = {**PLAIN, "vars": {"GPUYARD_GPU": "required"} if gpu else {}}
    results = walk(load("publish"), values, lambda job: outcomes.get(job, "success"), {})
    assert results["publish"] == expected
    assert results["gpu"] == ("skipped" if not gpu or build != "success" else on_gpu)


def test_a_gpu_job_that_was_skipped_by_accident_publishes_nothing() -> None:
    """Configured, and yet not run: the condition alone decides."""
    job = load("publish")["jobs"]["publish"]
    done = {"matrix": {"result": "success"}, "build": {"result": "success"}, "gpu": {"result": "skipped"}}
    for configured, runs in (({"GPUYARD_GPU": "required"}, False), ({}, True)):
        assert condition(job["if"], Contexts({**PLAIN, "vars": configured, "needs": done})) is runs
    cancelled = Contexts({**PLAIN, "needs": done}, cancelled=True)
    assert not condition(job["if"], cancelled)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_a_job_takes_from_another_is_given_there(file: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job names an output only of a job it needs, which declares it, from a step that really writes it."""
    written = listed(monkeypatch)
    jobs = load(file.stem)["jobs"]
    for job in jobs.values():
        for text in expressions(job):
            for other, output in re.findall(r"needs\.([\w-]+)\.outputs\.([\w-]+)", text):
                assert other in needs(job)
                assert output in jobs[other]["outputs"]
            for step, output in re.findall(r"steps\.([\w-]+)\.outputs\.([\w-]+)", text):
                (writer,) = (one for one in job["steps"] if one.get("id") == step)
                assert output in written or "uses" in writer


def artifacts(workflow: Workflow, action: str, values: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Job, name and path of everything that passes by this action, for each product of the matrix."""
    for name, job in workflow["jobs"].items():
        products = json.loads(values["products"]) if "strategy" in job else [{}]
        for product in products:
            contexts = Contexts({**PLAIN, "needs": values["needs"], "matrix": {"product": product}})
            for step in job["steps"]:
                if step.get("uses", "").startswith(f"actions/{action}-artifact@"):
                    yield name, value(step["with"]["name"], contexts), step["with"]["path"].rstrip("/")


@pytest.mark.parametrize(("result", "report"), [("success", "gpu"), ("skipped", "cpu")])
def test_layout_and_report_reach_the_job_that_publishes(
    monkeypatch: pytest.MonkeyPatch, result: str, report: str
) -> None:
    """For every image: what was built once is what is verified and published, with the GPU's report where it ran."""
    workflow, written = load("publish"), listed(monkeypatch)
    values = {"products": written["products"], "needs": {"gpu": {"result": result}}}
    up = {name: (job, path) for job, name, path in artifacts(workflow, "upload", values)}
    down = list(artifacts(workflow, "download", values))
    products = json.loads(written["products"])
    for job, name, path in down:
        assert up[name][0] in needs(workflow["jobs"][job])
        assert up[name][1] == path
    for product in products:
        ending = f"{product['line']}-{product['image']}"
        got = {name for job, name, _ in down if job == "publish" and name.endswith(f"-{ending}")}
        assert got == {f"layout-{ending}", f"report-{report}-{ending}"}
    assert len(up) == 3 * len(products)


def test_an_image_is_built_once() -> None:
    """A second build could be another image than the one that was verified."""
    runs = [
        step["run"]
        for job in load("publish")["jobs"].values()
        for step in job["steps"]
        if "gpuyard build" in step.get("run", "")
    ]
    assert len(runs) == 1


def test_the_registry_is_a_valid_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Capital letters in the repository's name, a registry of one's own, and the host to log in to."""
    forge = listed(monkeypatch, GITHUB_REPOSITORY="Lab/Images")
    assert (forge["registry"], forge["host"]) == ("ghcr.io/lab/images", "ghcr.io")
    own = listed(monkeypatch, GITHUB_REPOSITORY="Lab/Images", REGISTRY="registry.test:5000/team/images")
    assert (own["registry"], own["host"]) == ("registry.test:5000/team/images", "registry.test:5000")


def test_the_login_is_at_the_registry_that_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the forge's own token, or with the secret of another registry."""
    outputs = listed(monkeypatch, REGISTRY="registry.test/team/images")
    for name in ("publish", "nightly"):
        logins = [
            step["with"]
            for job in load(name)["jobs"].values()
            for step in job["steps"]
            if step.get("uses", "").startswith("docker/login-action@")
        ]
        assert logins
        for given in logins:
            values = {**PLAIN, "needs": {"matrix": {"outputs": outputs}}}
            assert value(given["registry"], Contexts(values)) == "registry.test"
            assert value(given["password"], Contexts(values)) == "token"
            other = {**values, "secrets": {"REGISTRY_PASSWORD": "own"}, "vars": {"REGISTRY_USER": "robot"}}
            assert value(given["password"], Contexts(other)) == "own"
            assert value(given["username"], Contexts(other)) == "robot"


def test_a_signature_of_the_workflow_fits_the_identity_that_is_asked_for() -> None:
    """And one of another repository or workflow does not."""
    job = load("publish")["jobs"]["publish"]
    identity = value(job["env"]["IDENTITY"], Contexts(PLAIN))
    signed = "https://github.com/{}/.github/workflows/{}.yml@refs/heads/main"
    assert re.match(identity, signed.format("Lab/Images", "publish"))
    assert not re.match(identity, signed.format("Lab/Images-2", "publish"))
    assert not re.match(identity, signed.format("Lab/Images", "publish-all"))


def test_the_slow_tests_have_a_job() -> None:
    """Nightly, since a change does not wait for them."""
    runs = [step.get("run") for step in load("nightly")["jobs"]["slow"]["steps"]]
    assert "make test-all" in runs
