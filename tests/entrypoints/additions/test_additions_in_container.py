"""What users add, and where it outlives the container: packages, caches, certificates."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.containers import Run

from ..conftest import wait_for
from ..test_long_running import write

pytestmark = pytest.mark.image


def test_a_package_of_the_users_outlives_the_container(run: Run, tmp_path: Path) -> None:
    """Installed by pip into a folder on a volume, under the image's constraints, found again by the next start."""
    tmp_path.chmod(0o777)
    package = tmp_path / "tinyextra"
    write(package / "pyproject.toml", '[project]\nname = "tinyextra"\nversion = "1"\n[build-system]\nrequires = []\n')
    write(tmp_path / "make.py", MAKE_WHEEL)
    options = {
        "environment": {"GPUYARD_VENV": "/workspace/.venv"},
        "volumes": {str(tmp_path): {"bind": "/workspace", "mode": "rw"}},
    }
    script = "python make.py && pip install -q --no-index ./tinyextra-1-py3-none-any.whl && pip config list"
    first = run("sh", "-c", script, **options)
    assert first.code == 0, first.stderr
    assert "constraints.txt" in first.stdout
    look = "import sys, tinyextra, torch; print(sys.prefix, tinyextra.__file__, torch.__file__)"
    assert run("python", "-c", look, **options).stdout.split() == [
        "/workspace/.venv",
        next(f"/workspace/.venv/lib/{p.name}/site-packages/tinyextra.py" for p in (tmp_path / ".venv/lib").iterdir()),
        next(f"/opt/venv/lib/{p.name}/site-packages/torch/__init__.py" for p in (tmp_path / ".venv/lib").iterdir()),
    ]


MAKE_WHEEL = """
import zipfile
with zipfile.ZipFile("tinyextra-1-py3-none-any.whl", "w") as wheel:
    wheel.writestr("tinyextra.py", "")
    info = "tinyextra-1.dist-info/"
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: tinyextra\\nVersion: 1\\n")
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr(info + "RECORD", "tinyextra.py,,\\n")
"""


def test_uv_installs_into_the_same_folder_under_the_same_constraints(run: Run, tmp_path: Path) -> None:
    """And refuses another torch, as pip does."""
    tmp_path.chmod(0o777)
    write(tmp_path / "make.py", MAKE_WHEEL)
    options = {
        "environment": {"GPUYARD_VENV": "/workspace/.venv"},
        "volumes": {str(tmp_path): {"bind": "/workspace", "mode": "rw"}},
    }
    script = "python make.py && uv pip install -q --offline --no-index ./tinyextra-1-py3-none-any.whl; echo $?"
    script += "; uv pip install --offline --no-index --find-links . 'torch==9.9.9'; echo $?"
    ended = run("sh", "-c", script, **options)
    assert ended.stdout.split() == ["0", "1"], ended.stderr
    assert list((tmp_path / ".venv").glob("lib/python3*/site-packages/tinyextra.py"))


def wheel(folder: Path, name: str, version: int) -> str:
    """Makes a wheel of one module, which says its version; where a container sees it."""
    file = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info/"
    with zipfile.ZipFile(file, "w") as made:
        made.writestr(f"{name}/__init__.py", f"version = {version}\n")
        made.writestr(info + "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        made.writestr(info + "WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        made.writestr(info + "RECORD", f"{name}/__init__.py,,\n")
    file.chmod(0o644)
    return f"/wheels/{file.name}"


@pytest.mark.parametrize("user", ["12345:0", "4321:4321", "1000:1000", "0"])
def test_every_user_installs_upgrades_and_imports(run: Run, tmp_path: Path, user: str) -> None:
    """With plain --user: where the image's environment is somebody else's, one of the user's own lies over it.

    A new package, the next version of it, and another version of one of the image's; by uv, too.
    """
    tmp_path.chmod(0o755)
    say = "python -c 'import tiny; print(tiny.version)'"
    steps = [f"pip install -q --no-index {wheel(tmp_path, 'tiny', 1)}", say]
    steps += [f"pip3 install -q --no-index -U {wheel(tmp_path, 'tiny', 2)}", say]
    steps += [f"uv pip install -q --offline --no-index {wheel(tmp_path, 'tiny', 3)}", say]
    steps += [
        f"pip install -q --no-index {wheel(tmp_path, 'tqdm', 999)}",
        "python -c 'import tqdm; print(tqdm.version)'",
    ]
    volumes = {str(tmp_path): {"bind": "/wheels", "mode": "ro"}}
    environment = {"GPUYARD_ALLOW_ROOT": "yes"}
    ended = run("sh", "-c", " && ".join(steps), user=user, volumes=volumes, environment=environment)
    assert ended.stdout.split() == ["1", "2", "3", "999"], ended.stderr


def test_programs_of_the_image_that_run_code_see_what_was_installed(run: Run, tmp_path: Path) -> None:
    """torchrun starts the environment's Python, as it starts the image's for trainer; and verify finds no fault."""
    tmp_path.chmod(0o755)
    (tmp_path / "job.py").write_text("import tiny; print('tiny', tiny.version)\n")
    script = f"pip install -q --no-index {wheel(tmp_path, 'tiny', 1)}"
    script += " && torchrun --standalone --nproc-per-node=1 /wheels/job.py"
    script += " && verify --only python,one-torch,user-site,image-env >/dev/null"
    volumes = {str(tmp_path): {"bind": "/wheels", "mode": "ro"}}
    ended = run("sh", "-c", script, user="4321:4321", volumes=volumes)
    assert (ended.code, ended.stdout) == (0, "tiny 1\n"), ended.stderr


def test_an_environment_of_an_older_image_gets_what_it_lacks(run: Run, tmp_path: Path) -> None:
    """A program of the user's own under the same name stays."""
    tmp_path.chmod(0o777)
    volumes = {str(tmp_path): {"bind": "/workspace", "mode": "rw"}}
    options = {"volumes": volumes, "environment": {"GPUYARD_VENV": "/workspace/.venv"}}
    assert run("true", **options).code == 0
    (tmp_path / ".venv/bin/torchrun").unlink()
    (tmp_path / ".venv/bin/ipython").write_text("#!/bin/sh\n")
    assert run("which", "torchrun", **options).stdout == "/workspace/.venv/bin/torchrun\n"
    assert (tmp_path / ".venv/bin/ipython").read_text() == "#!/bin/sh\n"


def test_no_user_swaps_torch(run: Run, tmp_path: Path) -> None:
    """The constraints hold in an environment of the user's own as in the image's."""
    tmp_path.chmod(0o755)
    volumes = {str(tmp_path): {"bind": "/wheels", "mode": "ro"}}
    ended = run("pip", "install", "--no-index", wheel(tmp_path, "torch", 999), user="4321:4321", volumes=volumes)
    assert ended.code == 1
    assert "(constraint) torch" in ended.stdout


@pytest.mark.parametrize("options", [{}, {"user": "4321:4321"}, {"read_only": True}])
def test_screen_works_for_every_user(run: Run, options: dict[str, Any]) -> None:
    """Its sockets lie where any user may make some, or, where nothing can be written, in the start's own folder."""
    # screen returns before its socket is there.
    wait = "for n in $(seq 50); do screen -ls | grep -o '[0-9]*.work' && break; sleep 0.1; done"
    script = f"screen -dmS work sleep 60; {wait}; screen -S work -X quit"
    ended = run("sh", "-c", script, **options)
    assert ended.stdout.strip().endswith(".work"), ended.stdout + ended.stderr


CACHES = """
import os, pathlib, torch, matplotlib
from huggingface_hub.constants import HF_HUB_CACHE
print(HF_HUB_CACHE, torch.hub.get_dir(), matplotlib.get_cachedir(), os.environ["TRITON_CACHE_DIR"])
pathlib.Path(HF_HUB_CACHE).mkdir(parents=True, exist_ok=True)
print(torch.compile(lambda x: x.sin() + 1)(torch.zeros(3)).tolist())
"""


def test_a_shell_beside_a_command_has_what_the_start_added(run_container: Any) -> None:
    """By the one program that has it, and as whom the container became; plain ``docker exec`` goes past it."""
    environment = {"GPUYARD_UID": "1005", "GPUYARD_CACHE": "/workspace/.cache"}
    look = 'echo "$(id -u) $HOME $HF_HOME"'
    with run_container("sleep 60", user="root", environment=environment) as container:
        session = ["/opt/gpuyard/entrypoints/session", "-c", look]
        said = wait_for(lambda: "1005" in (text := container.exec_run(session).output.decode()) and text)
        assert said == "1005 /home/trainer /workspace/.cache/huggingface\n"
        assert b"HF_HOME" not in container.exec_run("env").output


@pytest.mark.full
def test_one_folder_on_a_volume_holds_every_cache(run: Run, tmp_path: Path) -> None:
    """Of Hugging Face, torch, its compiler, triton and Matplotlib; the next container finds what was built."""
    tmp_path.chmod(0o777)
    options = {
        "environment": {"GPUYARD_CACHE": "/mnt/cache"},
        "volumes": {str(tmp_path): {"bind": "/mnt/cache", "mode": "rw"}},
    }
    ended = run("python", "-c", CACHES, **options)
    assert ended.code == 0, ended.stderr
    assert all(place.startswith("/mnt/cache") for place in ended.stdout.splitlines()[0].split())
    built = set((tmp_path / "inductor").rglob("*.so"))
    assert built
    assert run("python", "-c", CACHES, **options).stdout == ended.stdout
    assert set((tmp_path / "inductor").rglob("*.so")) == built


def test_a_volume_at_a_cache_is_the_users(run: Run, docker_client: Any) -> None:
    """A new one takes over owner and mode of the image's folder; the folders above stay the user's, too."""
    volume = docker_client.volumes.create()
    try:
        mounts = {volume.name: {"bind": "/home/trainer/.cache/huggingface", "mode": "rw"}}
        ended = run("sh", "-c", "touch ~/.cache/huggingface/a ~/.cache/b && echo ok", volumes=mounts)
        assert (ended.stdout, "can't" in ended.stderr) == ("ok\n", False)
    finally:
        volume.remove()


def authority(folder: Path) -> None:
    """A company's certificate authority, and a server's certificate that it signed."""
    company = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=Company", "-days", "2"]
    subject = ["-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    server = ["openssl", "req", "-x509", "-CA", "ca.pem", "-CAkey", "ca.key", *subject, "-days", "2"]
    for command in (
        [*company, "-addext", "keyUsage=critical,keyCertSign", "-keyout", "ca.key", "-out", "ca.pem"],
        [*server, "-addext", "basicConstraints=critical,CA:false", "-keyout", "s.key", "-out", "s.pem"],
    ):
        subprocess.run(command, check=True, capture_output=True, cwd=folder)
    for file in folder.iterdir():
        file.chmod(0o644)


SERVE = """
import http.server, ssl, subprocess, sys, threading
server = http.server.HTTPServer(("127.0.0.1", 8443), http.server.SimpleHTTPRequestHandler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("/ca/s.pem", "/ca/s.key")
server.socket = context.wrap_socket(server.socket, server_side=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = "https://localhost:8443/"
ask = {
    "urllib": f"import urllib.request as r; r.urlopen('{url}')",
    "requests": f"import requests; requests.get('{url}').raise_for_status()",
    "httpx": f"import httpx; httpx.get('{url}').raise_for_status()",
}
for name, code in ask.items():
    print(name, subprocess.run([sys.executable, "-c", code], stderr=subprocess.DEVNULL).returncode)
print("curl", subprocess.run(["curl", "-sS", "-o", "/dev/null", url]).returncode)
"""


def test_a_companys_certificates_are_trusted_by_every_client(run: Run, tmp_path: Path) -> None:
    """Where they are named, and only there."""
    tmp_path.chmod(0o755)
    authority(tmp_path)
    options: dict[str, Any] = {"volumes": {str(tmp_path): {"bind": "/ca", "mode": "ro"}}, "working_dir": "/tmp"}
    trusted = run("python", "-c", SERVE, environment={"GPUYARD_CA": "/ca/ca.pem"}, **options)
    assert trusted.stdout.splitlines() == ["urllib 0", "requests 0", "httpx 0", "curl 0"], trusted.stderr
    alone = SERVE.replace("for name, code in ask.items():", "for name, code in ():")
    assert run("python", "-c", alone, **options).stdout == "curl 60\n"
