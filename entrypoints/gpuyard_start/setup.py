"""Everything that the services of a start need, laid out for the supervisor."""

from __future__ import annotations

from pathlib import Path

from . import config, first, gpu, health, jupyter, nvml, ports, runtime, services, sessions, ssh
from .folder import make_folder
from .log import Log


def host_keys(settings: config.Ssh, private: Path, log: Log) -> tuple[Path, ...]:
    """Copies of the host keys, made now if there are none yet; their fingerprints go to the log."""
    found = ssh.existing_host_keys(settings.host_keys)
    if not found and ssh.writable(settings.host_keys):
        found = (ssh.make_host_key(settings.host_keys),)
    elif not found:
        log.warning(f"SSH: {settings.host_keys} can't be written to: this container's host key ends with it")
        found = (ssh.make_host_key(private),)
    copies = tuple(key if key.parent == private else ssh.private_copy(key, private) for key in found)
    for copy in copies:
        log.info(f"SSH: host key {ssh.host_key_fingerprint(copy)} ({copy.name})")
    return copies


def set_up_ssh(settings: config.Ssh, user: runtime.User, scan: Path, log: Log) -> None:
    """Everything sshd needs, in private files outside of any mount."""
    private = scan.parent / services.PRIVATE
    private.mkdir(mode=0o700)
    authorized = private / "authorized_keys"
    services.write_private(authorized, "".join(f"{key.line}\n" for key in settings.keys))
    numbers = ports.for_ssh(settings.port, log)
    host = host_keys(settings, private, log)
    name = user.name or "trainer"
    text = ssh.render(ssh.installed(), numbers, name, host, authorized, settings.strict)
    quiet = "LogLevel ERROR\n" if log.style == "quiet" else ""
    services.add_ssh(scan, text + quiet, as_json=log.style == "json")
    count = f"{len(settings.keys)} key{'s' if len(settings.keys) > 1 else ''}"
    log.info(f"SSH: log in as {name} on port {' or '.join(map(str, numbers))} ({count})")


def set_up_services(wanted: config.Config, user: runtime.User, variables: dict[str, str], log: Log) -> Path:
    """The supervisor's scan folder, ready to be started; ``variables`` are what sessions get."""
    folder = make_folder()
    scan = services.make_scan_folder(folder, fatal=not wanted.command)
    sessions.write(folder, variables)
    on: dict[str, health.Service] = {}
    if wanted.jupyter:
        made = jupyter.settings(wanted.jupyter, user.uid == 0, log.style)
        services.add_jupyter(scan, made, wanted.jupyter.options, as_json=log.style == "json")
        if first.greet(config.WORKSPACE):
            log.info(f"JupyterLab: {config.WORKSPACE} was empty: {first.NOTEBOOK.name} is there to begin with")
        log.info(jupyter.notice(wanted.jupyter), always=wanted.jupyter.token_is_random)
        encrypted = wanted.jupyter.certificate is not None
        on[config.JUPYTER] = health.Service(wanted.jupyter.port, wanted.jupyter.base_url, encrypted)
    if wanted.ssh:
        set_up_ssh(wanted.ssh, user, scan, log)
        on[config.SSH] = health.Service(wanted.ssh.port)
    elif config.SSH in wanted.offered and not wanted.command:
        log.info('SSH is off: -e SSH_PUBLIC_KEY="$(cat ~/.ssh/id_ed25519.pub)" -p 2222:2222 turns it on')
    services.add_memory(scan)
    health.write_state(folder, health.State(on, bool(gpu.device_nodes()) and nvml.available()))
    return scan
