"""No option is accepted and ignored: each one of the command tree has a row here or a test that sees its effect."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from gpuyard import paths
from gpuyard.cli import main
from gpuyard.commands.tree import application
from tests.commands.elsewhere import ELSEWHERE
from tests.publish import small

SLURM, K8S, DEV = ("render", "slurm"), ("render", "k8s"), ("render", "devcontainer")
PUBLISH, TAGS = ("publish", "--registry", "127.0.0.1:1/a"), ("tags",)
PIPELINE = ("pipeline", "--registry", "127.0.0.1:1/a", "--dry-run")
LAYOUT = ("tags", "--layout", "layout")
PUBLISHED = (*PUBLISH, "--layout", "layout")
RUN = ("run", "--dry-run", "--gpus", "none")
Row = tuple[str, tuple[str, ...], tuple[str, ...], str]
ROWS: list[Row] = [
    ("build line", ("build", "--dry-run"), ("2.7",), "v2.7"),
    ("build --target/--image", ("build", "--dry-run"), ("--image", "runtime"), "-runtime"),
    ("build --os", ("build", "--dry-run"), ("--os", "mars"), "error[os-unknown]"),
    ("build --builder", ("build", "--dry-run"), ("--builder", "dockerfile"), "BuildKit"),
    ("build --layout", ("build", "--dry-run"), ("--layout", "out"), "to out"),
    ("fetch line", ("fetch", "--import", "/no/such"), ("2.7",), "fetch 2.7 --export"),
    ("fetch --image", ("fetch", "--import", "/no/such"), ("--image", "nowhere"), "nowhere"),
    ("fetch --os", ("fetch", "--import", "/no/such"), ("--os", "mars"), "error[os-unknown]"),
    ("fetch --export", ("fetch", "--import", "/no/such"), ("--export", "x"), "error[export-and-import]"),
    ("reproduce line", ("reproduce", "--image", "runtime", "--write"), ("0.1",), "error[line-unknown]"),
    ("reproduce --image", ("reproduce", "--write"), ("--image", "runtime"), "error[option-without-effect]"),
    ("reproduce --os", ("reproduce", "--image", "runtime", "--write"), ("--os", "mars"), "error[os-unknown]"),
    ("verify line", ("verify", "--image", "a:1"), ("2.9",), "error[line-beside-reference]"),
    ("verify --gpus", ("verify",), ("--gpus", "many"), "error[gpus-invalid]"),
    ("verify --shm-size", ("verify",), ("--shm-size", "big"), "error[size-invalid]"),
    ("verify --only", ("verify",), ("--only", "shm-sise"), "error[check-unknown]"),
    ("verify --require", ("verify",), ("--require", "shm-sise"), "error[check-unknown]"),
    ("verify --report-dir", ("verify",), ("--report-dir", "/proc/none"), "error[report-not-writable]"),
    ("run line", RUN, ("2.7",), ":v2.7"),
    ("run --image", RUN, ("--image", "runtime"), "-runtime"),
    ("run --gpus", RUN, ("--gpus", "many"), "error[gpus-invalid]"),
    ("run --shm-size", RUN, ("--shm-size", "123m"), "--shm-size=123m"),
    ("run -m/--memory", RUN, ("-m", "9g"), "--memory=9g"),
    ("run --user", RUN, ("--user", "12:34"), "--user=12:34"),
    ("run --name", RUN, ("--name", "one"), "--name=one"),
    ("run --detach/-d", RUN, ("-d",), "--detach"),
    ("run -v/--volume", RUN, ("-v", "data:/mnt/data"), "--volume=data:/mnt/data"),
    ("run --here", RUN, ("--here",), ":/workspace"),
    ("run -e/--env", RUN, ("-e", "A=b"), "--env=A=b"),
    ("run -p/--publish", RUN, ("-p", "7:7"), "--publish=7:7"),
    ("run --ssh-key", RUN, ("--ssh-key", "/none"), "error[ssh-key-unreadable]"),
    ("run --ca", RUN, ("--ca", "/none"), "error[ca-not-pem]"),
    ("run --jupyter-port", RUN, ("--jupyter-port", "9999"), "127.0.0.1:9999:8888"),
    ("run --ssh-port", RUN, ("-e", "PUBLIC_KEY=k", "--ssh-port", "2200"), ":2200:2222"),
    ("run --bind", RUN, ("--bind", "0.0.0.0"), "0.0.0.0:8888"),
    ("list --json", ("list",), ("--json",), '"default"'),
    ("list --github", ("list", "--json"), ("--github",), "lines=["),
    ("pick --driver", ("pick",), ("--driver", "550"), "take "),
    ("pick --gpu", ("pick",), ("--gpu", "8.9"), "take "),
    ("pick --image", ("pick", "--gpu", "8.9"), ("--image", "runtime"), "-runtime"),
    ("pick --json", ("pick", "--gpu", "8.9"), ("--json",), '"tag"'),
    ("report file", ("report",), ("/none.json",), "error[report-invalid]"),
    ("report --report-dir", ("report",), ("--report-dir", "/none"), "no report in /none"),
    ("clean --line", ("clean", "--dry-run"), ("--line", "2.9"), "error[option-without-effect]"),
    ("clean --older-than", ("clean", "--dry-run"), ("--older-than", "1"), "error[option-without-effect]"),
    ("clean --images", ("clean", "--dry-run"), ("--images",), "error[engine-unreachable]"),
    ("clean --build-cache", ("clean", "--dry-run"), ("--build-cache",), "error[engine-unreachable]"),
    ("explain id", ("explain",), ("port-taken",), "What to do"),
    ("render slurm --engine", SLURM, ("--engine", "apptainer"), "apptainer needs"),
    ("render slurm --name", SLURM, ("--name", "one"), "--job-name=one"),
    ("render slurm --nodes", SLURM, ("--nodes", "3"), "--nodes=3"),
    ("render slurm --partition", SLURM, ("--partition", "fast"), "--partition=fast"),
    ("render slurm --account", SLURM, ("--account", "mine"), "--account=mine"),
    ("render slurm --time", SLURM, ("--time", "01:23:00"), "--time=01:23:00"),
    ("render slurm --cpus", SLURM, ("--cpus", "13"), "=13"),
    ("render slurm --memory", SLURM, ("--memory", "77"), "77"),
    ("render slurm --save-before", SLURM, ("--save-before", "321"), "321"),
    ("render slurm --gpus", SLURM, ("--gpus", "5"), "5"),
    ("render slurm --image", SLURM, ("--image", "team/a:1"), "team/a:1"),
    ("render slurm -v/--volume", SLURM, ("-v", "/scratch:/x"), "/scratch:/x"),
    ("render slurm -e/--env", SLURM, ("-e", "FOO_NAME"), "FOO_NAME"),
    ("render slurm --verify/--no-verify", SLURM, ("--no-verify",), ""),
    ("render k8s --kind", K8S, ("--kind", "jobset"), "kind: JobSet"),
    ("render k8s --image", K8S, ("--image", "team/a:1"), "team/a:1"),
    ("render k8s --name", K8S, ("--name", "one"), "name: one"),
    ("render k8s --gpus", K8S, ("--gpus", "5"), "nvidia.com/gpu: '5'"),
    ("render k8s --cpus", K8S, ("--cpus", "13"), "13"),
    ("render k8s --memory", K8S, ("--memory", "77"), "77Gi"),
    ("render k8s --shm", K8S, ("--shm", "7"), "7Gi"),
    ("render k8s --namespace", K8S, ("--namespace", "space"), "space"),
    ("render k8s --workspace", K8S, ("--workspace", "claim1"), "claim1"),
    ("render k8s --data", K8S, ("--data", "claim2"), "claim2"),
    ("render k8s --models", K8S, ("--models", "claim3"), "claim3"),
    ("render k8s --runtime", (*K8S, "--kind", "trainjob"), ("--runtime", "ours"), "name: ours"),
    ("render k8s -e/--env", K8S, ("-e", "FOO=bar"), "FOO"),
    ("render k8s --secret", K8S, ("--secret", "hush"), "hush"),
    ("render k8s --pull-secret", K8S, ("--pull-secret", "hush"), "hush"),
    ("render k8s --node-selector", K8S, ("--node-selector", "zone=a"), "zone"),
    ("render k8s --queue", K8S, ("--queue", "team"), "team"),
    ("render k8s --nodes", (*K8S, "--kind", "indexed-job"), ("--nodes", "3"), "completions: 3"),
    ("render k8s --verify/--no-verify", K8S, ("--no-verify",), ""),
    ("render slurm --shm", SLURM, ("--shm", "3"), "--shm-size 3g"),
    ("render slurm --output/-o", SLURM, ("-o", "/proc/none/x"), "/proc/none"),
    ("render k8s --output/-o", K8S, ("-o", "/proc/none/x"), "/proc/none"),
    ("render devcontainer --output/-o", DEV, ("-o", "/proc/none/x"), "/proc/none"),
    ("new folder", ("new", "--dry-run", "/tmp/gpuyard-x"), ("/tmp/y",), "unexpected"),
    ("new --image", ("new", "--dry-run", "x"), ("--image", "pytorch-cuda:v9"), "error["),
    ("new --name", ("new", "--dry-run", "x"), ("--name", "A B"), "error["),
    ("lock line", ("lock", "--check"), ("0.1",), "error["),
    ("lock --os", ("lock", "--check"), ("--os", "mars"), "error[os-unknown]"),
    ("page line", ("page", "--image", "runtime"), ("0.1",), "error[line-unknown]"),
    ("diff --json", ("diff", "2.9", "2.7"), ("--json",), '"old"'),
    ("inspect --ca-file", ("inspect", "127.0.0.1:1/a:b"), ("--ca-file", "/none"), "error[ca-file-missing]"),
    ("publish --report", PUBLISHED, ("--report", "/none.json"), "none.json"),
    ("publish --report-dir", PUBLISHED, ("--report-dir", "/none"), "/none"),
    ("publish --key", (*PUBLISHED, "--report-dir", "elsewhere"), ("--key", "/none.key"), "/none.key"),
    ("publish line", PUBLISH, ("0.1",), "error[line-unknown]"),
    ("publish --image", PUBLISH, ("--image", "nowhere"), "nowhere"),
    ("publish --os", PUBLISH, ("--os", "mars"), "error[os-unknown]"),
    ("publish --ca-file", PUBLISH, ("--ca-file", "/none"), "error[ca-file-missing]"),
    ("publish --layout", PUBLISH, ("--layout", "/none"), "/none"),
    ("tags line", TAGS, ("0.1",), "error[line-unknown]"),
    ("tags --image", TAGS, ("--image", "nowhere"), "nowhere"),
    ("tags --os", TAGS, ("--os", "mars"), "error[os-unknown]"),
    ("tags --layout", TAGS, ("--layout", "/none"), "/none"),
    ("tags --ca-file", (*LAYOUT, "--registry", "127.0.0.1:1/a"), ("--ca-file", "/none"), "error[ca-file-missing]"),
    ("tags --registry", LAYOUT, ("--registry", "127.0.0.1:1/a"), "error[registry-unreachable]"),
    ("tags --json", LAYOUT, ("--json",), '"verified"'),
    ("tags --report-dir", LAYOUT, ("--report-dir", "elsewhere"), ", verified"),
    ("pipeline --lines", PIPELINE, ("--lines", "0.4"), "0.4"),
    ("pipeline --images", PIPELINE, ("--images", "nowhere"), "nowhere"),
    ("pipeline --key", PIPELINE, ("--key", "k.key"), "k.key"),
    ("pipeline --ca-file", PIPELINE, ("--ca-file", "/none"), "/none"),
    ("pipeline --registry", PIPELINE, ("--registry", "elsewhere.example/b"), "elsewhere.example/b"),
    ("pipeline --plain-http/--no-plain-http", PIPELINE, ("--plain-http",), "--plain-http"),
    ("bases --ca-file", ("bases", "--mirror", "127.0.0.1:1/x"), ("--ca-file", "/none"), "error[ca-file-missing]"),
    ("render devcontainer --image", DEV, ("--image", "team/a:1"), "team/a:1"),
    ("render devcontainer --name", DEV, ("--name", "one"), "one"),
    ("render devcontainer --gpu", DEV, ("--gpu", "none"), ""),
    ("render devcontainer --shm", DEV, ("--shm", "3"), "3g"),
]
"""Option, words without it, the words that give it, and what only then is printed."""


def shown(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> str:
    """Everything that a call prints."""
    with pytest.raises(SystemExit) as ended:
        main([*words, *(("--", "python", "x.py") if words[0] == "render" and words[1] != "devcontainer" else ())])
    out = capsys.readouterr()
    return f"{ended.value.code} {out.out} {out.err}"


@pytest.mark.parametrize(("option", "words", "given", "only_then"), ROWS, ids=[row[0] for row in ROWS])
def test_the_option_has_an_effect(
    option: str,
    words: tuple[str, ...],
    given: tuple[str, ...],
    only_then: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Or is refused. Without an engine, which no row gets as far as to ask."""
    monkeypatch.setattr("gpuyard.engine.daemon.answers", lambda: False)
    monkeypatch.setenv("DOCKER_HOST", "unix:///none.sock")
    monkeypatch.setenv("GPUYARD_ENGINE", "never")
    monkeypatch.setenv("COLUMNS", "200")
    if "layout" in words:
        monkeypatch.chdir(tmp_path)
        digest = small.layout(tmp_path)
        small.write(tmp_path / "elsewhere", small.report(digest))
    before, after = shown(words, capsys), shown((*words, *given), capsys)
    assert option
    assert after != before
    assert only_then in after
    assert not only_then or only_then not in before


def options() -> Iterator[str]:
    """Every option and argument of every command."""
    for path, command in _commands(typer.main.get_command(application()), ()):
        for parameter in command.params:
            if parameter.name != "help":
                yield " ".join((*path, "/".join([*parameter.opts, *parameter.secondary_opts])))


def _commands(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if hasattr(command, "commands"):
        yield from itertools.chain.from_iterable(_commands(c, (*path, n)) for n, c in command.commands.items())
    else:
        yield path, command


def test_every_option_has_its_row_or_its_test() -> None:
    """A new option without one fails here, and so does a row of an option that is gone."""
    found, known = set(options()), {row[0] for row in ROWS} | set(ELSEWHERE)
    assert (sorted(found - known), sorted(known - found)) == ([], [])
    assert {row[0] for row in ROWS} & set(ELSEWHERE) == set()


@pytest.mark.parametrize("place", sorted(set(ELSEWHERE.values())))
def test_the_test_that_is_named_exists(place: str) -> None:
    """Somewhere else, by file and name."""
    file, _, name = place.partition("::")
    tree = ast.parse((paths.ROOT / "tests" / file).read_text())
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
