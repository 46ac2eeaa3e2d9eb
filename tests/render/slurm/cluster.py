"""A real Slurm of one machine: munge, a controller and nodes, in a folder and on ports of their own."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scontrol")
NODES = ("alpha", "beta")
# Two plain devices stand for GPUs: Slurm counts and numbers them, and opens none.
GPU_FILES = ("/dev/null", "/dev/zero")


def find(program: str) -> str | None:
    """The program, also where only root's PATH has it."""
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")


def free_port() -> int:
    """A port that nobody holds right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def eventually(true: Callable[[], bool], seconds: float, what: str, logs: Callable[[], str] = str) -> None:
    """Waits until it is true; fails, with the logs, if it does not become so in time."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"{what}: not within {seconds:g} s\n{logs()}"
        time.sleep(0.2)


@dataclass
class Cluster:
    """A running Slurm. Every command speaks to it and to no other on this machine."""

    folder: Path
    programs: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def env(self) -> dict[str, str]:
        return {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf")}

    def run(self, *command: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
        """What a Slurm command prints."""
        done = subprocess.run(
            command, env=self.env | (env or {}), cwd=cwd, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stderr}{self.logs()}"
        return done.stdout

    def submit(self, script: Path, *options: str, path: str | None = None) -> str:
        """The number of the job that this script becomes, submitted from its own folder."""
        env = {"PATH": path} if path else None
        return self.run("sbatch", "--parsable", *options, script.name, cwd=script.parent, env=env).strip()

    def job(self, number: str) -> dict[str, str]:
        """What Slurm knows of a job."""
        shown = self.run("scontrol", "--oneliner", "show", "job", number)
        return dict(word.partition("=")[::2] for word in shown.split() if "=" in word)

    def wait(self, number: str, *states: str, seconds: float = 120) -> dict[str, str]:
        """The job, once it is in one of these states."""
        eventually(lambda: self.job(number)["JobState"] in states, seconds, f"job {number} {states}", self.logs)
        return self.job(number)

    def logs(self) -> str:
        """The ends of the daemons' logs."""
        return "\n".join(f"{file.name}: {file.read_text()[-3000:]}" for file in sorted(self.folder.glob("*.log")))

    def start(self, *command: str) -> None:
        """A daemon in the foreground, which dies with the cluster."""
        name = f"{Path(command[0]).name}{len(self.programs)}"
        with (self.folder / f"{name}.out.log").open("wb") as out:
            self.programs.append(subprocess.Popen(command, env=self.env, stdout=out, stderr=out))

    def stop(self) -> None:
        """Ends every daemon that this cluster started, the last one first."""
        for program in reversed(self.programs):
            program.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                program.wait(10)
            program.kill()
            program.wait()


def configuration(folder: Path, host: str) -> str:
    """A slurm.conf without control groups, which a container or a bare machine may not have."""
    user = "root" if os.getuid() == 0 else os.environ.get("USER", "nobody")
    nodes = "\n".join(
        f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={free_port()} CPUs=2 RealMemory=6000 "
        f"Gres=gpu:{len(GPU_FILES)} State=UNKNOWN"
        for name in NODES
    )
    return f"""ClusterName=gpuyard
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={free_port()}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
GresTypes=gpu
KillWait=5
MpiDefault=none
ReturnToService=2
SchedulerParameters=sched_interval=2,bf_interval=2
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
Prolog={folder}/prolog
Epilog={folder}/epilog
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """Starts one in the folder, waits until its nodes are idle, and ends it, whatever happens."""
    folder.chmod(0o755)
    (folder / "state").mkdir()
    for name in NODES:
        (folder / f"spool-{name}").mkdir()
    (folder / "munge.key").write_bytes(secrets.token_bytes(128))
    (folder / "munge.key").chmod(0o400)
    for name in ("prolog", "epilog"):
        (folder / name).write_text("#!/bin/sh\nexit 0\n")
        (folder / name).chmod(0o755)
    (folder / "slurm.conf").write_text(configuration(folder, socket.gethostname().split(".")[0]))
    (folder / "gres.conf").write_text("".join(f"Name=gpu File={file}\n" for file in GPU_FILES))
    (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
    found = Cluster(folder)
    try:
        _start(found)
        yield found
    finally:
        found.stop()


def _start(found: Cluster) -> None:
    folder = found.folder
    places = [
        f"--{part}={folder}/munge.{part.split('-')[0]}" for part in ("key-file", "socket", "pid-file", "seed-file")
    ]
    found.start(str(find("munged")), "--foreground", "--force", *places, f"--log-file={folder}/munged.log")
    eventually((folder / "munge.socket").exists, 20, "munge", found.logs)
    found.start(str(find("slurmctld")), "-D")
    for name in NODES:
        found.start(str(find("slurmd")), "-D", "-N", name)
    eventually(lambda: _idle(found), 60, "idle nodes", found.logs)


def _idle(found: Cluster) -> bool:
    asked = ["sinfo", "--noheader", "--Node", "--format=%N %T"]
    done = subprocess.run(asked, env=found.env, capture_output=True, text=True, timeout=30, check=False)
    return done.stdout.split() == [word for name in NODES for word in (name, "idle")]
