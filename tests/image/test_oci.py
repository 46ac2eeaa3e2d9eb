"""The parts of an image that is put together: configuration, manifest, layout, sizes."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest

from gpuyard import paths
from gpuyard.catalogue.product import find_product
from gpuyard.catalogue.table import Catalogue
from gpuyard.image import configuration, oci, sizes
from gpuyard.image.assemble import Options
from gpuyard.image.build import build
from gpuyard.layers.model import Layer
from gpuyard.store.store import Damaged, Store
from tests.refusals import refused

BELOW = oci.Descriptors(({"mediaType": oci.LAYER, "digest": "sha256:00", "size": 3},), ("sha256:base",), ())


def blob(store: Store, data: bytes) -> Layer:
    """A layer with that content."""
    name = oci.digest_of(data)
    with store.part() as part:
        part.write_bytes(data)
        store.keep(part, name)
    return Layer(name, len(data), "sha256:" + hashlib.sha256(b"tar" + data).hexdigest(), {"what": data.decode()}, {})


def image(store: Store) -> oci.Image:
    """An image of two layers and no base."""
    none = oci.Descriptors((), (), ())
    return oci.compose(none, [blob(store, b"one"), blob(store, b"two")], {"User": "1000"}, "2020-01-01T00:00:00Z")


def test_an_image_is_its_base_then_its_layers(tmp_path: Path) -> None:
    """Blobs, diff ids and history in the same order; each layer carries its annotations."""
    layer = blob(Store(tmp_path), b"one")
    made = oci.compose(BELOW, [layer], {"User": "1000"}, "2020-01-01T00:00:00Z")
    config, manifest = json.loads(made.config), json.loads(made.manifest)
    assert made.blobs == ["sha256:00", layer.digest]
    assert config["rootfs"]["diff_ids"] == ["sha256:base", layer.diff_id]
    assert manifest["layers"][1]["annotations"] == {"what": "one"}
    assert manifest["config"]["digest"] == oci.digest_of(made.config)


def test_the_same_parts_make_the_same_digest(tmp_path: Path) -> None:
    """Whatever the folder."""
    assert image(Store(tmp_path / "a")).digest == image(Store(tmp_path / "b")).digest


def test_a_stream_holds_what_either_image_store_reads(tmp_path: Path) -> None:
    """The index for containerd, manifest.json for the classic one, and every blob under its digest."""
    store = Store(tmp_path)
    made, out = image(store), io.BytesIO()
    oci.write_tar(out, made, "name:tag", store)
    out.seek(0)
    with tarfile.open(fileobj=out) as tar:
        content = {member.name: (tar.extractfile(member) or io.BytesIO()).read() for member in tar}
    for path, data in content.items():
        if path.startswith("blobs/"):
            assert hashlib.sha256(data).hexdigest() == Path(path).name
    (classic,) = json.loads(content["manifest.json"])
    assert classic["RepoTags"] == ["name:tag"]
    assert {classic["Config"], *classic["Layers"]} <= content.keys()
    assert json.loads(content["index.json"])["manifests"][0]["digest"] == made.digest


def test_a_layout_folder_is_complete_and_a_damaged_blob_never_gets_into_one(tmp_path: Path) -> None:
    """What is wrong is removed from the store, so that the next try makes it again."""
    store = Store(tmp_path / "store")
    made = image(store)
    oci.write_layout(tmp_path / "layout", made, "name:tag", store)
    blobs = list((tmp_path / "layout" / "blobs" / "sha256").iterdir())
    assert len(blobs) == 4
    store.blob(made.blobs[0]).unlink()
    store.blob(made.blobs[0]).write_bytes(b"bad")
    with pytest.raises(Damaged):
        oci.write_layout(tmp_path / "other", made, "name:tag", store)


@pytest.mark.parametrize("name", ["cuda", "torch", "runtime", "workbench"])
def test_nothing_but_configuration_is_left_of_a_dockerfile(table: Catalogue, name: str) -> None:
    """RUN and COPY go with their continued lines; everything that sets the configuration stays."""
    text = (paths.IMAGES / table.image[name].folder / "Dockerfile").read_text()
    left = configuration.without_run(text, name)
    words = [line.split(" ")[0] for line in left.splitlines() if line and line[0] not in " #"]
    assert not {"RUN", "COPY", "ADD"} & set(words)
    kept = ("FROM", "ENV", "ARG", "USER", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT")
    assert [word for word in words if word in kept] == [
        line.split(" ")[0] for line in text.splitlines() if line.split(" ")[0] in kept
    ]
    assert "--mount" not in left


@pytest.mark.parametrize(
    "line",
    [
        "RUN <<'SH'\nUSER 0\nSH",
        "COPY x /etc/x",
        "copy x /etc/x",
        "ADD x /etc/x",
        "LABEL a=b",
        "ONBUILD RUN x",
        "VOLUM /x",
    ],
)
def test_an_instruction_that_layers_cannot_replace_is_refused(line: str) -> None:
    """A heredoc's lines can't be told from instructions, and what another instruction writes would be missing."""
    with refused("dockerfile-unsupported", "images/x/Dockerfile", line.split("\n")[0]):
        configuration.without_run(f"FROM base\n{line}\n", "x")


def test_a_run_goes_with_its_continued_lines_and_comments() -> None:
    """What looks like an instruction in it goes too; a comment after it stays."""
    text = "FROM a\nrun one \\\n  # USER 0\n\n  USER 1 \\\n  two\n# kept\nUSER 2\n"
    assert configuration.without_run(text, "x") == "FROM a\n# kept\nUSER 2\n"


def test_sizes_tell_shared_from_own_and_what_a_download_is() -> None:
    """By blob: an image that has all the other has is downloaded for nothing."""
    images = {"small": {"a": 10, "b": 5}, "large": {"a": 10, "b": 5, "c": 100}}
    found = sizes.sizes(images)
    assert (found["small"].total, found["small"].shared, found["small"].unique) == (15, 15, 0)
    assert (found["large"].shared, found["large"].unique) == (15, 100)
    assert sizes.download(images["large"], images["small"]) == 0
    assert sizes.download(images["small"], images["large"]) == 100


def test_the_newest_image_of_a_name_is_remembered(tmp_path: Path) -> None:
    """In the store, so that lines built at different times are compared."""
    store = Store(tmp_path)
    sizes.remember(store, "repository/name:tag", image(store))
    assert sum(sizes.known(store)["repository/name:tag"].values()) == 6


def test_offline_is_for_layers(table: Catalogue) -> None:
    """BuildKit would ask the index; the refusal says what to use."""
    assert Options().offline is False
    with refused("offline-needs-layers", "--builder layers", code=2):
        build(find_product(table, None), builder="dockerfile", offline=True)
