"""Every verdict of the outside checks, on facts that are good and on facts that are bad."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpuyard.acceptance import config, content, jupyter, life, ssh
from gpuyard.acceptance.world import expectations
from gpuyard.catalogue import table
from gpuyard.catalogue.product import find_product
from verify.model import Claims, Evaluate, Owner, Status

NOBODY = Claims({}, {})
PYTHON = "/venv/bin/python"


def entry(path: str, size: int = 10, private: bool = False) -> dict[str, Any]:
    """A file of a layer as facts hold it."""
    return {"layer": "layer 3", "path": path, "size": size, "private": private}


def files(*paths: str) -> dict[str, Any]:
    """Facts about layers with an innocent file and these."""
    return {"entries": [entry("/etc/passwd"), *map(entry, paths)]}


@pytest.mark.parametrize(
    "path",
    [
        "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
        "/usr/local/cuda/compat/libcuda.so.1",
        "/usr/local/cuda/lib64/stubs/libcuda.so",
        "/usr/bin/nvidia-smi",
        "/lib/modules/1/nvidia-uvm.ko.zst",
    ],
)
def test_a_driver_file_is_found_and_blamed_on_the_image(path: str) -> None:
    """The file and its layer are named."""
    verdict = content.evaluate_driver(files(path), NOBODY)
    assert (verdict.status, verdict.owner) == (Status.FAIL, Owner.IMAGE)
    assert path in verdict.observed
    assert "layer 3" in verdict.observed
    assert verdict.remedy


def test_cuda_libraries_are_no_driver() -> None:
    """What the wheels bring stays."""
    fine = files("/v/nvidia/nccl/lib/libnccl.so.2", "/v/libcudart.so.12", "/v/libnvrtc.so", "/v/libcudnn.so.9")
    assert content.evaluate_driver(fine, NOBODY).status is Status.PASS


@pytest.mark.parametrize(
    "path",
    [
        "/etc/ssh/ssh_host_ed25519_key",
        "/etc/ssh/ssh_host_rsa_key.pub",
        "/root/.ssh/id_rsa",
        "/home/trainer/.ssh/authorized_keys",
        "/home/trainer/.local/share/jupyter/runtime/jupyter_cookie_secret",
        "/root/.netrc",
        "/root/.docker/config.json",
        "/home/trainer/.cache/huggingface/token",
        "/root/.bash_history",
        "/var/lib/gpuyard/ssh/ssh_host_ed25519_key",
    ],
)
def test_a_secret_in_a_layer_is_found(path: str) -> None:
    """Host keys, logins and traces of a person are named with their layer."""
    verdict = content.evaluate_secrets(files(path), NOBODY)
    assert (verdict.status, verdict.owner) == (Status.FAIL, Owner.IMAGE)
    assert path in verdict.observed


def test_a_private_key_is_found_by_what_it_holds() -> None:
    """No name gives it away."""
    verdict = content.evaluate_secrets({"entries": [entry("/opt/notes.txt", private=True)]}, NOBODY)
    assert "/opt/notes.txt (a private key" in verdict.observed


@pytest.mark.parametrize(("size", "status"), [(33, Status.FAIL), (0, Status.PASS), (14, Status.PASS)])
def test_a_machine_id_counts_once_it_is_set(size: int, status: Status) -> None:
    """Empty and 'uninitialized' are how an image should hold it."""
    facts = {"entries": [entry("/etc/machine-id", size)]}
    assert content.evaluate_secrets(facts, NOBODY).status is status


def test_no_layer_read_is_no_pass() -> None:
    """Nothing seen is nothing proven."""
    assert content.evaluate_secrets({"entries": []}, NOBODY).status is Status.UNKNOWN
    assert content.evaluate_driver({"entries": []}, NOBODY).status is Status.UNKNOWN


@pytest.fixture(scope="module")
def claims() -> Claims:
    """What the catalogue expects of the default image."""
    return expectations(find_product(table.load(), None))


@pytest.fixture
def good(claims: Claims) -> dict[str, Any]:
    """A configuration that is as the catalogue says."""
    versions = claims.image["versions"]
    env = {
        "PATH": "/v/bin:/usr/bin",
        "VIRTUAL_ENV": "/v",
        "PYTHONNOUSERSITE": "1",
        "NVIDIA_VISIBLE_DEVICES": "all",
        "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
        "NVIDIA_REQUIRE_CUDA": f"cuda>={versions['cuda'].split('.')[0]}.0",
        "PYTORCH_VERSION": versions["torch"].split("+")[0],
    }
    return {
        "Env": [f"{name}={value}" for name, value in env.items()],
        "Labels": {**claims.image["labels"], "org.opencontainers.image.revision": "f00"},
        "User": "1000:1000",
        "WorkingDir": "/workspace",
        "Entrypoint": list(config.ENTRYPOINT),
        "Cmd": None,
        "ExposedPorts": {f"{port}/tcp": {} for port in claims.image["ports"]},
        "Healthcheck": {"Test": ["CMD", "/h"]},
    }


@pytest.mark.parametrize("evaluate", [config.evaluate_env, config.evaluate_labels, config.evaluate_start])
def test_a_configuration_as_the_catalogue_says_passes(good: dict[str, Any], claims: Claims, evaluate: Evaluate) -> None:
    """The good case of all three."""
    assert evaluate(good, claims).status is Status.PASS


@pytest.mark.parametrize(
    "variable",
    [
        "NCCL_DEBUG=INFO",
        "OMP_NUM_THREADS=1",
        "CUDA_LAUNCH_BLOCKING=1",
        "LD_LIBRARY_PATH=/x",
        "NVIDIA_VISIBLE_DEVICES=0",
    ],
)
def test_a_baked_or_wrong_variable_fails(good: dict[str, Any], claims: Claims, variable: str) -> None:
    """Tuning belongs to whoever starts the container; NVIDIA's variables have one right value."""
    verdict = config.evaluate_env({**good, "Env": [*good["Env"], variable]}, claims)
    assert verdict.status is Status.FAIL
    assert variable.split("=")[0] in verdict.observed


@pytest.mark.parametrize("name", ["NVIDIA_DRIVER_CAPABILITIES", "NVIDIA_REQUIRE_CUDA", "PYTORCH_VERSION", "PATH"])
def test_a_missing_variable_fails(good: dict[str, Any], claims: Claims, name: str) -> None:
    """Each of the variables that the image must bring is missed."""
    env = [item for item in good["Env"] if not item.startswith(name + "=")]
    assert config.evaluate_env({**good, "Env": env}, claims).status is Status.FAIL


def test_a_label_that_drifted_is_named_with_both_values(good: dict[str, Any], claims: Claims) -> None:
    """A label of another release fails, and so does a missing one."""
    good["Labels"]["io.gpuyard.cuda"] = "9.9"
    verdict = config.evaluate_labels(good, claims)
    assert verdict.status is Status.FAIL
    assert f"io.gpuyard.cuda='9.9', not '{claims.image['versions']['cuda']}'" in verdict.observed
    assert config.evaluate_labels({**good, "Labels": None}, claims).status is Status.FAIL


@pytest.mark.parametrize(
    "wrong",
    [
        {"User": "root"},
        {"ExposedPorts": {"8888/tcp": {}}},
        {"Entrypoint": None},
        {"Healthcheck": {"Test": ["NONE"]}},
        {"Healthcheck": None},
        {"WorkingDir": "/"},
        {"Cmd": ["bash"]},
    ],
)
def test_another_start_fails(good: dict[str, Any], claims: Claims, wrong: dict[str, Any]) -> None:
    """User, ports, entrypoint, health check, folder and command are each compared."""
    assert config.evaluate_start({**good, **wrong}, claims).status is Status.FAIL


SESSION = [PYTHON, dict.fromkeys(ssh.CARRIED, "v")]
OTHER = [PYTHON, {**SESSION[1], "PATH": "/usr/bin"}]  # type: ignore[dict-item]

CASES: list[tuple[Evaluate, dict[str, Any], Status]] = [
    (ssh.evaluate_login, {"ssh": {"2222": SESSION, "22": SESSION}, "exec": SESSION, "python": PYTHON}, Status.PASS),
    (ssh.evaluate_login, {"ssh": {"2222": SESSION, "22": "refused"}, "exec": SESSION, "python": PYTHON}, Status.FAIL),
    (ssh.evaluate_login, {"ssh": {"2222": OTHER}, "exec": SESSION, "python": PYTHON}, Status.FAIL),
    (ssh.evaluate_login, {"ssh": {"2222": SESSION}, "exec": SESSION, "python": "/usr/bin/python"}, Status.FAIL),
    (ssh.evaluate_methods, {"let_in": False, "methods": ["publickey"]}, Status.PASS),
    (ssh.evaluate_methods, {"let_in": False, "methods": ["publickey", "password"]}, Status.FAIL),
    (ssh.evaluate_methods, {"let_in": False, "methods": []}, Status.FAIL),
    (ssh.evaluate_methods, {"let_in": True, "methods": []}, Status.FAIL),
    (ssh.evaluate_wrong_key, {"let_in": False}, Status.PASS),
    (ssh.evaluate_wrong_key, {"let_in": True}, Status.FAIL),
    (ssh.evaluate_host_keys, {"first": "SHA256:a", "second": "SHA256:b"}, Status.PASS),
    (ssh.evaluate_host_keys, {"first": "SHA256:a", "second": "SHA256:a"}, Status.FAIL),
    (ssh.evaluate_host_keys, {"first": "SHA256:a", "second": None}, Status.UNKNOWN),
    (jupyter.evaluate_closed, {"codes": {"/api/contents": 403, "a wrong token": 403}}, Status.PASS),
    (jupyter.evaluate_closed, {"codes": {"/api/contents": 200}}, Status.FAIL),
    (jupyter.evaluate_closed, {"codes": {"/api/contents": 403, "a wrong token": 200}}, Status.FAIL),
    (jupyter.evaluate_token, {"code": 200}, Status.PASS),
    (jupyter.evaluate_token, {"code": 403}, Status.FAIL),
    (
        jupyter.evaluate_kernel,
        {"printed": [PYTHON, "2.0"], "error": "", "python": PYTHON, "seconds": 1.0},
        Status.PASS,
    ),
    (
        jupyter.evaluate_kernel,
        {"printed": ["/usr/bin/python3", "2.0"], "error": "", "python": PYTHON, "seconds": 1.0},
        Status.FAIL,
    ),
    (
        jupyter.evaluate_kernel,
        {"printed": [PYTHON], "error": "ImportError: no torch", "python": PYTHON, "seconds": 1.0},
        Status.FAIL,
    ),
    (life.evaluate_echo, {"code": 0, "stdout": "x\n"}, Status.PASS),
    (life.evaluate_echo, {"code": 0, "stdout": "welcome\nx\n"}, Status.FAIL),
    (life.evaluate_echo, {"code": 1, "stdout": "x\n"}, Status.FAIL),
    (life.evaluate_ready, {"seconds": 2.0, "health": 0, "said": ""}, Status.PASS),
    (life.evaluate_ready, {"seconds": 2.0, "health": 1, "said": "ssh is down"}, Status.FAIL),
    (life.evaluate_stop, {"seconds": 0.3, "code": 0}, Status.PASS),
    (life.evaluate_stop, {"seconds": 10.2, "code": 137}, Status.FAIL),
    (life.evaluate_stop, {"seconds": 0.2, "code": 137}, Status.FAIL),
]


@pytest.mark.parametrize(("evaluate", "facts", "status"), CASES)
def test_the_verdict_follows_the_facts(evaluate: Evaluate, facts: dict[str, Any], status: Status) -> None:
    """Each check of a container in its good and its bad cases; a failure has owner and remedy."""
    assert json.loads(json.dumps(facts)) == facts
    verdict = evaluate(facts, NOBODY)
    assert verdict.status is status
    assert verdict.observed
    if status is Status.FAIL:
        assert verdict.owner is Owner.IMAGE
        assert verdict.remedy
