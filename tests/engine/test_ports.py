"""A port that is taken is named before anything starts."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest

from gpuyard.engine.ports import check_ports, process_on
from gpuyard.engine.start import Port
from tests.refusals import refused

OPTIONS = {8888: "--jupyter-port"}


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that this process listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_taken_port_is_named_with_its_holder_and_the_option(taken: int) -> None:
    """The line says which port, who has it, and how to choose another."""
    with refused("port-taken", taken, " me:", "--jupyter-port"):
        check_ports([Port(8888, taken)], lambda _port: "me", OPTIONS)


def test_a_free_port_passes(taken: int) -> None:
    """A port nobody listens on is not refused, and one that the engine chooses is not even tried."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        free = server.getsockname()[1]
    assert free != taken
    check_ports([Port(8888, free), Port(8888, None)], lambda _port: "me", OPTIONS)


def test_the_process_that_listens_is_found(taken: int) -> None:
    """The kernel's tables lead from the port to the process."""
    assert f"(pid {os.getpid()})" in process_on(taken)


def test_nobody_is_named_for_a_port_that_nobody_holds() -> None:
    """No listener, no name."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        free = server.getsockname()[1]
    assert process_on(free) == ""


def test_a_number_that_is_no_port_is_refused() -> None:
    """Ports end at 65535."""
    with refused("port-invalid", 70000, code=2):
        check_ports([Port(8888, 70000)], lambda _port: "", OPTIONS)


@pytest.mark.parametrize("address", ["192.0.2.1", "not an address"])
def test_an_address_of_another_host_is_refused(address: str) -> None:
    """--bind must name an address that this host has."""
    with refused("bind-address-unknown", address):
        check_ports([Port(8888, 18888, address)], lambda _port: "", OPTIONS)
