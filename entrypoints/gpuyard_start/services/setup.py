"""Prepares everything that the services need, in the supervisor's scan folder."""

from __future__ import annotations

from pathlib import Path

from .. import config, places
from ..folder import make_folder
from ..gpu import line, nvml
from ..jupyter import server, welcome_notebook
from ..log import Log
from ..ssh import daemon, sessions
from ..user import runtime
from . import health, ports, scan_folder


def host_keys(settings: config.Ssh, private: Path, log: Log) -> tuple[Path, ...]:
    """Copies of the host keys, made now if there are none yet; their fingerprints go to the log."""
    found = daemon.existing_host_keys(settings.host_keys)
    if not found and daemon.writable(settings.host_keys):
        found = (daemon.make_host_key(settings.host_keys),)
    elif not found:
        log.warning(
            "host-key-temporary", f"SSH: {settings.host_keys} can't be written to: the host key ends with the container"
        )
        found = (daemon.make_host_key(private),)
    copies = tuple(key if key.parent == private else daemon.private_copy(key, private) for key in found)
    for copy in copies:
        log.info(f"SSH: host key {daemon.host_key_fingerprint(copy)} ({copy.name})")
    return copies


def set_up_ssh(settings: config.Ssh, user: runtime.User, scan: Path, log: Log) -> None:
    """Everything sshd needs, in private files outside of any mount."""
    private = scan.parent / scan_folder.PRIVATE
    private.mkdir(mode=0o700)
    authorized = private / "authorized_keys"
    scan_folder.write_private(authorized, "".join(f"{key.line}\n" for key in settings.keys))
    numbers = ports.for_ssh(settings.port, log)
    host = host_keys(settings, private, log)
    name = user.name or "trainer"
    text = daemon.render(daemon.installed(), numbers, name, host, authorized, settings.strict)
    quiet = "LogLevel ERROR\n" if log.style == "quiet" else ""
    scan_folder.add_ssh(scan, text + quiet, as_json=log.style == "json")
    count = f"{len(settings.keys)} key{'s' if len(settings.keys) > 1 else ''}"
    log.info(f"SSH: log in as {name} on port {' or '.join(map(str, numbers))} ({count})")


def set_up_services(wanted: config.Config, user: runtime.User, variables: dict[str, str], log: Log) -> Path:
    """The supervisor's scan folder, ready to be started; ``variables`` are what sessions get."""
    folder = make_folder()
    scan = scan_folder.make_scan_folder(folder, fatal=not wanted.command)
    sessions.write(folder, variables)
    on: dict[str, health.Service] = {}
    if wanted.jupyter:
        made = server.settings(wanted.jupyter, user.uid == 0, log.style)
        scan_folder.add_jupyter(scan, made, wanted.jupyter.options, as_json=log.style == "json")
        if welcome_notebook.greet(places.WORKSPACE):
            log.info(
                f"JupyterLab: {places.WORKSPACE} was empty: {welcome_notebook.NOTEBOOK.name} is there to begin with"
            )
        log.info(server.notice(wanted.jupyter), always=wanted.jupyter.token_is_random)
        encrypted = wanted.jupyter.certificate is not None
        on[config.JUPYTER] = health.Service(wanted.jupyter.port, wanted.jupyter.base_url, encrypted)
    if wanted.ssh:
        set_up_ssh(wanted.ssh, user, scan, log)
        on[config.SSH] = health.Service(wanted.ssh.port)
    elif config.SSH in wanted.offered and not wanted.command:
        log.info('SSH is off: -e SSH_PUBLIC_KEY="$(cat ~/.ssh/id_ed25519.pub)" -p 2222:2222 turns it on')
    scan_folder.add_memory(scan)
    health.write_state(folder, health.State(on, gpu=bool(line.device_nodes()) and nvml.available()))
    return scan
