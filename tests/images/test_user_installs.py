"""A user's pip and uv can't break torch: replacing it is refused, and a forced swap is named and repaired."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from docker.models.containers import Container

from gpuyard import paths
from gpuyard.catalogue.claims import held
from gpuyard.catalogue.product import Product
from gpuyard.catalogue.table import Catalogue
from gpuyard.packages.fetcher import Fetcher
from gpuyard.packages.locked import read
from gpuyard.store.store import Store, sha256_of
from tests.containers import Runner
from tests.images.index import INDEX, MOUNT, wheel

pytestmark = pytest.mark.image
INSTALLERS = {"pip": "pip install --disable-pip-version-check", "uv": "uv pip install"}
CALLERS = {"trainer": "1000:1000", "a stranger": "23456:0", "root": "0:0"}
GREEDY = ("wants-other-torch", "wants-cpu-torch", "wants-newer-cudnn", "wants-newer-vision", "wants-other-line")


@dataclass(frozen=True)
class House:
    """A container that waits, with the index in it."""

    container: Container

    def run(self, command: str, user: str = "1000:1000", **environment: str) -> tuple[int, str]:
        """Exit code and everything a command printed."""
        code, said = self.container.exec_run(["bash", "-c", command], user=user, environment=environment)
        return code, said.decode(errors="replace")

    def findings(self, checks: str, **environment: str) -> dict[str, dict[str, Any]]:
        """What verify says of these checks, by name."""
        _, said = self.run(f"verify --only {checks} --json - 2>/dev/null", **environment)
        return {finding["check"]: finding for finding in json.loads(said)["findings"]}


@pytest.fixture(scope="module")
def product(table: Catalogue) -> Product:
    """The default workbench."""
    return Product(table, table.default_line, "workbench", table.default_os)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory, product: Product) -> Path:
    """Packages that want another torch, another build, another cuDNN, another CUDA; and what they want."""
    folder, row = tmp_path_factory.mktemp("index"), product.row
    cudnn = next(name for name in held(product) if name.startswith("nvidia-cudnn"))
    other = f"nvidia-cublas-cu{int(row.cuda_major) + 1}"
    wants = {
        "wants-other-torch": "torch==99.0",
        "wants-cpu-torch": f"torch=={row.torch}+cpu",
        "wants-newer-cudnn": f"{cudnn}>=99",
        "wants-newer-vision": "torchvision==99.0",
        "wants-other-line": f"torch=={row.torch}+cu{int(row.cuda_major) + 1}0",
    }
    for name, want in wants.items():
        wheel(folder, name, "1.0", want)
    wheel(folder, "modest", "1.0", "torch>=2", "numpy")
    wheel(folder, "wants-other-cuda", "1.0", other)
    wheel(folder, other, "99.0")
    wheel(folder, "numpy", "1.0")
    wheel(folder, "absl-py", "99.0")
    for name in ("torch", "torchvision", cudnn, "nvidia-nvtx-cu12"):
        wheel(folder, name, "99.0")
    for build in ("cpu", f"cu{int(row.cuda_major) + 1}0"):
        wheel(folder, "torch", f"{row.torch}+{build}")
    folder.chmod(0o755)
    return folder


def house_of(run_container: Runner, index: Path) -> Iterator[House]:
    mounts = {
        str(index): {"bind": MOUNT, "mode": "ro"},
        str(paths.DOCKER): {"bind": "/scripts", "mode": "ro"},
    }
    with run_container(["sleep", "infinity"], volumes=mounts, environment=INDEX) as container:
        yield House(container)


@pytest.fixture(scope="module")
def kept(run_container: Runner, index: Path) -> Iterator[House]:
    """One container for everything that must change nothing."""
    yield from house_of(run_container, index)


@pytest.fixture
def spoilt(run_container: Runner, index: Path) -> Iterator[House]:
    """A container that a test may break."""
    yield from house_of(run_container, index)


def versions(house: House, product: Product) -> str:
    """The installed versions of the held packages, and torch.__version__."""
    names = list(held(product))
    code = f"import importlib.metadata as m; import torch.version as t; print(t.__version__, t.cuda, {names!r})"
    code += f"; print([m.version(n) for n in {names!r}])"
    return house.run(f'cd / && python -c "{code}"')[1]


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("installer", INSTALLERS)
def test_a_package_that_wants_another_build_is_refused(
    kept: House, product: Product, installer: str, caller: str
) -> None:
    """Each is refused with the name of the held package, for every user, and nothing changes."""
    before, user = versions(kept, product), CALLERS[caller]
    for package in GREEDY if caller == "trainer" else GREEDY[:2]:
        code, said = kept.run(f"{INSTALLERS[installer]} {package}", user, HOME=f"/tmp/{user}")
        assert code != 0, said
        assert package in said
        assert "conflict" in said or "unsatisfiable" in said or "cannot be used" in said
    assert versions(kept, product) == before
    assert product.row.torch_version in before


@pytest.mark.parametrize("installer", INSTALLERS)
def test_the_constraints_hold_without_the_images_variables(kept: House, installer: str) -> None:
    """`env -i`, as cron or another login would start it: the system-wide files say the same."""
    options = f"--no-index --find-links {MOUNT} --python /opt/venv/bin/python"
    options = options if installer == "uv" else options.rpartition(" --python")[0]
    bare = "env -i HOME=/tmp PATH=/opt/venv/bin:/usr/bin:/bin"
    code, said = kept.run(f"{bare} {INSTALLERS[installer]} {options} wants-cpu-torch")
    assert code != 0, said
    assert "torch" in said


@pytest.mark.parametrize("installer", INSTALLERS)
def test_forcing_and_upgrading_swap_nothing(kept: House, product: Product, installer: str) -> None:
    """A forced reinstall can't find the held build in an index of others; an eager upgrade leaves it alone."""
    before = versions(kept, product)
    force = "--force-reinstall" if installer == "pip" else "--reinstall"
    code, _ = kept.run(f"{INSTALLERS[installer]} {force} torch")
    assert code != 0
    eager = "--upgrade --upgrade-strategy eager" if installer == "pip" else "--upgrade"
    kept.run(f"{INSTALLERS[installer]} {eager} modest")
    assert versions(kept, product) == before


@pytest.mark.parametrize("caller", ["trainer", "root"])
@pytest.mark.parametrize("installer", INSTALLERS)
def test_a_package_that_is_content_with_torch_is_installed(kept: House, installer: str, caller: str) -> None:
    """Most packages ask for some torch, and get this one."""
    user = CALLERS[caller]
    code, said = kept.run(f"{INSTALLERS[installer]} modest", user)
    assert code == 0, said
    assert kept.run("python -c 'import modest'")[0] == 0
    remove = "pip uninstall -q -y" if installer == "pip" else "uv pip uninstall -q"
    assert kept.run(f"{remove} modest", user)[0] == 0


def test_a_project_of_uv_has_an_environment_of_its_own(kept: House, product: Product) -> None:
    """`uv sync` puts what a project locks into the project's folder, not over the image's torch."""
    before = versions(kept, product)
    project = '[project]\nname = "p"\nversion = "0"\nrequires-python = ">=3"\ndependencies = ["torch==99.0"]\n'
    made = f"mkdir -p /tmp/p && cd /tmp/p && printf '%s' '{project}' > pyproject.toml && uv sync"
    code, said = kept.run(made)
    assert code == 0, said
    assert "99.0" in kept.run("/tmp/p/.venv/bin/python -c 'import torch; print(torch.__version__)'")[1]
    assert versions(kept, product) == before


def test_the_same_lock_gives_the_same_packages_on_another_day(kept: House, index: Path) -> None:
    """A newer release in the index changes nothing; a release that is gone is named."""
    first = wheel(index, "drifting", "1.0")
    lock = index / "lock.txt"
    lock.write_text(f"drifting==1.0 --hash=sha256:{sha256_of(first)}\n")
    build = f"bash /scripts/install-wheels.sh {MOUNT}/lock.txt"
    ask = "python -c 'import drifting; print(drifting.__version__)'; uv pip uninstall -q drifting"
    assert kept.run(f"{build} && {ask}", user="0:0")[1].splitlines()[-1] == "1.0"
    wheel(index, "drifting", "2.0")
    assert kept.run(f"{build} && {ask}", user="0:0")[1].splitlines()[-1] == "1.0"
    first.unlink()
    code, said = kept.run(f"rm -rf /var/cache/uv; {build}", user="0:0")
    assert code != 0
    assert "drifting" in said
    assert "1.0" in said


def forced(house: House, words: str) -> None:
    """Installs without the constraints."""
    code, said = house.run(
        f"env -u PIP_CONSTRAINT -u UV_CONSTRAINT uv pip install --no-config -q --no-deps --reinstall {words}"
    )
    assert code == 0, said


def test_a_forced_swap_is_named_and_the_printed_command_repairs_it(
    spoilt: House, index: Path, product: Product
) -> None:
    """verify says which package, which version it was, and a command; after that command all is well again."""
    name = next(name for name in held(product) if name.startswith("nvidia-nvtx"))
    forced(spoilt, f"{name}==99.0")
    found = spoilt.findings("lock")["lock"]
    assert found["status"] == "fail"
    assert f"{name} is 99.0 instead of {held(product)[name]}" in found["observed"]
    locked = next(entry for entry in read(product.locks.path("cuda")) if entry.name == name)
    real = Fetcher(Store(), product.python).ensure(locked)
    shutil.copyfile(real.path, index / real.path.name)
    command = found["remedy"].partition(", or ")[0]
    assert command.startswith("uv pip install")
    code, said = spoilt.run(command)
    assert code == 0, said
    assert spoilt.findings("lock")["lock"]["status"] == "pass"


def test_a_cpu_build_is_named(spoilt: House, product: Product) -> None:
    """The gate of a build: torch is not what the tag, the labels and image.json say; so is a missing sibling."""
    forced(spoilt, f"torch=={product.row.torch}+cpu")
    assert spoilt.run("uv pip uninstall -q torchvision")[0] == 0
    found = spoilt.findings("lock,torch-versions,one-torch")
    assert [found[check]["status"] for check in ("lock", "torch-versions", "one-torch")] == ["fail"] * 3
    assert f"{product.row.torch}+cpu is a CPU build" in found["one-torch"]["observed"]
    assert "torchvision is missing" in found["torch-versions"]["observed"]
    assert f"torch=={product.row.torch}" in found["torch-versions"]["remedy"]


def test_another_cuda_and_another_numpy_are_named(spoilt: House, product: Product) -> None:
    """What no constraint can hold is seen afterwards: two CUDA majors, and NumPy swapped by an old package."""
    forced(spoilt, "numpy==1.0")
    assert spoilt.run("uv pip install -q wants-other-cuda")[0] == 0
    found = spoilt.findings("lock,cuda-majors,lock-strays,pip-check")
    majors = found["cuda-majors"]
    assert majors["status"] == "fail"
    assert f"CUDA {int(product.row.cuda_major) + 1}: nvidia-cublas-cu" in majors["observed"]
    assert "numpy is 1.0 instead of" in found["lock"]["observed"]
    assert found["pip-check"]["status"] == "fail"
    assert "wants-other-cuda==1.0" in found["lock-strays"]["observed"]


def test_packages_of_ones_own_are_first_class(spoilt: House) -> None:
    """A template's CI passes with real requirements: added and changed packages are notes."""
    assert spoilt.run("uv pip install -q modest")[0] == 0
    forced(spoilt, "absl-py==99.0")
    found = spoilt.findings("packages,lock-strays")
    assert {check: f["status"] for check, f in found.items()} == dict.fromkeys(found, "pass")
    assert "modest==1.0" in found["lock-strays"]["observed"]
    assert "absl-py is 99.0 instead of" in found["lock"]["observed"]


@pytest.mark.parametrize("spoil", ["uv pip uninstall -q numpy", "uv pip install --no-config -q --no-deps torch==99.0"])
def test_every_consequence_of_a_swap_has_one_owner(spoilt: House, spoil: str) -> None:
    """Whoever installed or removed it; never the image, whose own packages are as they were."""
    assert spoilt.run(f"env -u PIP_CONSTRAINT -u UV_CONSTRAINT {spoil}")[0] == 0
    found = spoilt.findings("packages,numpy-bridge,torch-import,imports")
    failed = {check: f["owner"] for check, f in found.items() if f["status"] == "fail"}
    assert "lock" in failed
    assert len(failed) >= 3, failed
    assert set(failed.values()) == {"container start"}


def test_variables_and_paths_that_lie_are_named(kept: House) -> None:
    """A variable with another torch version, and a `python` that is not the image's."""
    assert kept.run("mkdir -p /tmp/other/bin && ln -sf /usr/bin/python3 /tmp/other/bin/python")[0] == 0
    found = kept.findings("image-env,python", PYTORCH_VERSION="9.9.9", PATH="/tmp/other/bin:/usr/local/bin:/usr/bin")
    assert "PYTORCH_VERSION=9.9.9" in found["image-env"]["observed"]
    assert found["python"]["status"] == "fail"
    assert "python on PATH is in /tmp/other" in found["python"]["observed"]


def test_the_licences_of_torch_and_nvidia_are_in_the_image(kept: House, product: Product) -> None:
    """One place links to each held package's own files, and `licenses` lists every package with its texts."""
    code, said = kept.run("cd /opt/gpuyard/licenses && for p in *; do [ -f $p/METADATA ] || echo $p; done")
    assert (code, said) == (0, "")
    listed = {entry["name"]: entry for entry in json.loads(kept.run("licenses --json")[1])}
    assert set(held(product)) <= set(listed)
    torch = kept.run("head -c 4000 " + listed["torch"]["files"][0])[1]
    assert "PyTorch" in torch
    cublas = next(name for name in held(product) if name.startswith("nvidia-cublas"))
    assert "NVIDIA" in kept.run("cat " + " ".join(listed[cublas]["files"]))[1]
    assert "End User License Agreement" in kept.run("cat " + " ".join(listed[cublas]["files"]))[1]
