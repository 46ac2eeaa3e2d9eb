"""Several processes that train one model: torchrun says who they are, gloo or NCCL connects them."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
from torch import distributed

from examples.errors import ExampleError
from examples.reach import require_reachable


@dataclass(frozen=True)
class World:
    """This process's place among all of them."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1

    @property
    def leads(self) -> bool:
        """Whether this process speaks for all."""
        return self.rank == 0

    @property
    def saves(self) -> bool:
        """Whether this process saves: one on every node, whose folders may not be the same."""
        return self.local_rank == 0

    def total(self, values: list[float]) -> list[float]:
        """Each number summed over all processes: the same list in every one."""
        if self.size == 1:
            return values
        summed = torch.tensor(values, dtype=torch.float64, device=_exchange_device())
        distributed.all_reduce(summed)
        found: list[float] = summed.tolist()
        return found

    def newest(self, number: int, content: Any) -> Any:
        """The content of the process whose number is highest, in every process; of the first among equals."""
        if self.size == 1:
            return content
        numbers: list[Any] = [None] * self.size
        distributed.all_gather_object(numbers, number)
        box = [content]
        distributed.broadcast_object_list(box, src=numbers.index(max(numbers)))
        return box[0]

    def shared(self, model: Any) -> Any:
        """The model, with gradients that are the mean over all processes."""
        if self.size == 1:
            return model
        # The first process's values for all; buffers hold nothing that is learned here.
        return torch.nn.parallel.DistributedDataParallel(model, broadcast_buffers=False)


def _exchange_device() -> str:
    return "cuda" if distributed.get_backend() == "nccl" else "cpu"


def world_from(environment: dict[str, str] | os._Environ[str]) -> World:
    """What torchrun (or Slurm's and Kubernetes' launchers) set in the environment; alone without it."""
    if "WORLD_SIZE" not in environment:
        return World()
    try:
        rank, size = int(environment["RANK"]), int(environment["WORLD_SIZE"])
        local = int(environment.get("LOCAL_RANK", "0")), int(environment.get("LOCAL_WORLD_SIZE", "1"))
    except (KeyError, ValueError) as error:
        raise ExampleError(f"RANK and WORLD_SIZE must both be numbers: {error}; start it by torchrun") from None
    if not 0 <= rank < size or not 0 <= local[0] < local[1] <= size:
        raise ExampleError(
            f"RANK={rank} (on its node {local[0]} of {local[1]}) has no place in WORLD_SIZE={size}: "
            "every node must be started with the same --nnodes and --nproc-per-node"
        )
    nodes = environment.get("GPUYARD_NODES", "")
    if nodes.isdecimal() and size != int(nodes) * local[1]:
        raise ExampleError(
            f"this node was started for {nodes} node(s) of {local[1]} process(es), but {size} processes met: "
            "start every node with the same --nodes and --processes"
        )
    return World(rank, size, *local)


@contextmanager
def joined(device: str, seconds: float) -> Iterator[World]:
    """Meets the other processes, and leaves them at the end; alone where there are no others."""
    world = world_from(os.environ)
    if world.size == 1:
        yield world
        return
    if world.size > world.local_size:
        require_reachable(socket.gethostname())
    backend = "nccl" if device.startswith("cuda") else "gloo"
    limit = timedelta(seconds=seconds)
    try:
        store = _store(world, limit)
        distributed.init_process_group(backend, store=store, rank=world.rank, world_size=world.size, timeout=limit)
    except (RuntimeError, ValueError) as error:
        raise ExampleError(_meeting_failed(world, str(error), seconds)) from None
    try:
        yield world
        # The first process keeps the table of the others: none leaves before all are done.
        world.total([0.0])
    finally:
        distributed.destroy_process_group()


def _store(world: World, limit: timedelta) -> Any:
    """The table where the processes find each other, after all have said how many they think they are."""
    host, port = os.environ.get("MASTER_ADDR", ""), os.environ.get("MASTER_PORT", "")
    if not host or not port.isdecimal():
        raise ExampleError("MASTER_ADDR and MASTER_PORT must say where the processes meet; start it by torchrun")
    # Either torchrun keeps the table, with what earlier attempts wrote, or the first process makes a new one.
    kept = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    store = distributed.TCPStore(
        host, int(port), is_master=world.leads and not kept, timeout=limit, wait_for_workers=False
    )
    # A node that came back later counts attempts of its own: in a new table they must not tell places apart.
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") if kept else "0"
    expected = store.compare_set(f"gpuyard/size/{attempt}", "", str(world.size)).decode()
    if expected != str(world.size):
        raise ExampleError(
            f"this process was started as one of {world.size}, another one as one of {expected}: "
            "start every node with the same --nnodes and --nproc-per-node"
        )
    return distributed.PrefixStore(f"gpuyard/{attempt}", store)


def _meeting_failed(world: World, said: str, seconds: float) -> str:
    place = f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"
    if "EADDRINUSE" in said or "address already in use" in said.lower():
        return f"the port of {place} is taken by another program: choose another --master-port"
    last = said.strip().splitlines()[0] if said.strip() else "no answer"
    return (
        f"process {world.rank} of {world.size} did not meet the others at {place} within {seconds:g} s ({last}): "
        "is every node started, with the same number of processes, and does a firewall let them through?"
    )


def lost(error: Exception) -> str:
    """The words for a process that is gone, or nothing where the error means something else."""
    said = str(error)
    signs = ("Connection closed by peer", "Connection reset", "Timed out waiting", "NCCL", "gloo", "Broken pipe")
    if not isinstance(error, distributed.DistError) and not any(sign in said for sign in signs):
        return ""
    last = said.strip().splitlines()[0]
    return f"another process is gone or silent ({last}); under torchrun all start again from the last checkpoint"
