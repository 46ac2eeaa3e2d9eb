"""The kernel's tables are read as they are on both versions of cgroups."""

from __future__ import annotations

from pathlib import Path

from verify.probes import system


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_cgroup_v2_takes_the_least_on_the_way_up(tmp_path: Path) -> None:
    """A parent's smaller limit wins over the own one."""
    write(tmp_path / "fs/a/b/memory.max", "max\n")
    write(tmp_path / "fs/a/memory.max", "1073741824\n")
    write(tmp_path / "fs/a/b/cpu.max", "150000 100000\n")
    write(tmp_path / "self", "0::/a/b\n")
    own = str(tmp_path / "self")
    assert system.memory_limit(tmp_path / "fs", own) == 1 << 30
    assert system.cpu_quota(tmp_path / "fs", own) == 1.5


def test_cgroup_v1_reads_its_own_files(tmp_path: Path) -> None:
    """Quota and period divide; the huge number that means no limit is none."""
    write(tmp_path / "fs/cpu/cpu.cfs_quota_us", "50000")
    write(tmp_path / "fs/cpu/cpu.cfs_period_us", "100000")
    write(tmp_path / "fs/memory/memory.limit_in_bytes", "9223372036854771712")
    write(tmp_path / "self", "4:cpu,cpuacct:/docker/x\n3:memory:/docker/x\n")
    own = str(tmp_path / "self")
    assert system.cpu_quota(tmp_path / "fs", own) == 0.5
    assert system.memory_limit(tmp_path / "fs", own) is None


def test_without_cgroups_there_is_no_limit(tmp_path: Path) -> None:
    """A machine without the files has no limits, not an error."""
    assert system.cpu_quota(tmp_path, "/nowhere") is None
    assert system.memory_limit(tmp_path, "/nowhere") is None


def test_mounts_are_read_with_their_types() -> None:
    """Spaces in a mount point are escaped in mountinfo and come out as spaces."""
    text = "36 35 0:5 / /dev/shm rw - tmpfs shm rw\n37 35 0:6 / /a\\040b rw master:1 - ext4 /dev/sda rw"
    assert system.mounts(text) == {"/dev/shm": "tmpfs", "/a b": "ext4"}


def test_a_mounted_file_is_not_the_images() -> None:
    """A file counts as mounted when it or a folder above it is a mount, the root excepted."""
    points = {"/", "/usr/lib/libcuda.so.1", "/mnt"}
    assert system.mounted_at("/usr/lib/libcuda.so.1", points) == "/usr/lib/libcuda.so.1"
    assert system.mounted_at("/mnt/deep/file", points) == "/mnt"
    assert system.mounted_at("/usr/lib/other.so", points) == ""


def test_sizes_read_like_dockers_flags() -> None:
    """64 MB is what docker calls 64m."""
    assert [system.size(n) for n in (64 << 20, 1 << 30, 1536 << 20)] == ["64 MB", "1 GB", "1.5 GB"]
