"""Reading every layer, deleted files included, by either way and in any compression."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

import pytest
import zstandard

from gpuyard.layers.reading import Entry, Stream, lower_folders, read_save, walk

# Put together at run time, so that no scanner takes this file for a key.
KEY = ("-----BEGIN OPENSSH " + "PRIVATE KEY-----\nAAAA\n").encode()
FILES = {"etc/app/secret": KEY, "usr/bin/tool": b"x" * 9, "opt/venv/lib/site-packages/test.key": KEY}


def tar(files: dict[str, bytes]) -> bytes:
    """A tar with these files."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


def saved(*layers: bytes) -> Stream:
    """A stream as docker save gives it, in chunks of a size that fits nothing."""
    blobs = {f"blobs/sha256/{number:064d}": layer for number, layer in enumerate(layers)}
    whole = tar({"oci-layout": b"{}", **blobs, "manifest.json": b"[]"})
    return Stream(whole[at : at + 1000] for at in range(0, len(whole), 1000))


@pytest.mark.parametrize("compress", [bytes, gzip.compress, zstandard.compress])
def test_the_files_of_a_layer_are_listed_in_any_compression(compress: type[bytes]) -> None:
    """Plain, gzip and zstd layers give the same entries."""
    found = {entry.path: entry for entry in read_save(saved(compress(tar(FILES))))}
    assert set(found) == {"/etc/app/secret", "/usr/bin/tool", "/opt/venv/lib/site-packages/test.key"}
    assert found["/usr/bin/tool"].size == 9


def test_a_key_is_noticed_by_its_first_line_but_not_among_packages() -> None:
    """Published packages ship keys for their own tests."""
    marked = [entry.path for entry in read_save(saved(tar(FILES))) if entry.private]
    assert marked == ["/etc/app/secret"]


def test_a_file_that_a_later_layer_deletes_is_still_found() -> None:
    """The whiteout above it hides it from a container, not from whoever has the image."""
    below, above = tar({"etc/ssh/ssh_host_rsa_key": b"k"}), tar({"etc/ssh/.wh.ssh_host_rsa_key": b""})
    assert [entry.path for entry in read_save(saved(below, above))] == ["/etc/ssh/ssh_host_rsa_key"]


def test_a_damaged_zstd_layer_is_an_error_and_no_empty_list() -> None:
    """Bytes that break off or make no sense are not taken for the end."""
    layer = bytearray(zstandard.compress(tar({"a": b"y" * 5000})))
    layer[20:40] = bytes(20)
    with pytest.raises((zstandard.ZstdError, tarfile.TarError)):
        list(read_save(saved(bytes(layer))))


def test_a_directory_gives_the_same_as_the_tar(tmp_path: Path) -> None:
    """Both ways of reading agree, links included and not followed."""
    for name, data in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    (tmp_path / "etc" / "link").symlink_to("/nowhere")
    (tmp_path / "etc" / "folder").symlink_to("app")
    found = {entry.path: entry for entry in walk(tmp_path, "l")}
    assert set(found) - {"/etc/link", "/etc/folder"} == {"/" + name for name in FILES}
    assert {"/etc/link", "/etc/folder"} <= set(found)
    assert found["/etc/app/secret"] == Entry("l", "/etc/app/secret", len(KEY), True)


def test_the_layers_of_a_mounted_root_are_read_bottom_first() -> None:
    """The kernel lists the uppermost first; only the mount on / counts."""
    line = "9 8 0:1 / {} rw - overlay overlay rw,lowerdir=/l/3:/l/2:/l/1,upperdir=/s/9/fs,workdir=/w"
    text = line.format("/mnt/other").replace("/l/", "/m/") + "\n" + line.format("/")
    assert lower_folders(text) == [Path("/l/1"), Path("/l/2"), Path("/l/3")]
    assert lower_folders(line.format("/").replace("/l/", "")) == [Path("/s/1"), Path("/s/2"), Path("/s/3")]
    assert lower_folders("9 8 0:1 / / rw - ext4 /dev/sda rw") == []
