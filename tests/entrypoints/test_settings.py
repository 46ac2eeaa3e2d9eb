"""Each variable of the container has an effect that is seen here, or is refused; a new one without a case fails."""

from __future__ import annotations

import pwd
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from entrypoints.gpuyard_start import config, log, settings
from entrypoints.gpuyard_start.additions import ca
from entrypoints.gpuyard_start.errors import Refusal
from entrypoints.gpuyard_start.jupyter import server
from entrypoints.gpuyard_start.ssh import daemon, sessions
from entrypoints.gpuyard_start.user import users

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
HASH = "argon2:$argon2id$v=19$m=10240,t=10,p=8$c2FsdA$aGFzaA"
ROOT = {"GPUYARD_UID": "54321"}
Env = dict[str, str]


def asked(env: Env) -> config.Config:
    """The configuration of a workbench image, with no key file anywhere."""
    return config.read((), env, {"services": ["jupyter", "ssh"]}, Path("/nonexistent"))


def jupyter(env: Env) -> dict[str, Any]:
    """What JupyterLab is started with, all parts in one, and the log's line about it."""
    found = asked(env).jupyter
    assert found is not None
    made = server.settings(found, False, "text")
    return {**made["ServerApp"], **made["PasswordIdentityProvider"], "notice": server.notice(found)}


def ssh(env: Env) -> str:
    """sshd's settings; its keys and folder of host keys beside them."""
    found = asked({"SSH_PUBLIC_KEY": KEY, **env}).ssh
    assert found is not None
    text = daemon.render(daemon.Release(10, 0), (found.port,), "trainer", (), Path("/k"), found.strict)
    return "\n".join([text, *(key.line for key in found.keys), str(found.host_keys)])


def user(env: Env) -> users.Target | None:
    """Whom a start as root becomes."""
    return users.target(env, 0, 0)


def chown(env: Env) -> tuple[Path, ...]:
    """The folders that are given away."""
    found = user({**ROOT, **env})
    assert found is not None
    return found.give


class Case(NamedTuple):
    """A value, what is looked at with it and without it, and whether it shows there."""

    value: str
    look: Callable[[Env], Any]
    shows: Callable[[Any], bool]
    beside: Env = {}


CASES = {
    "JUPYTER_TOKEN": Case("t0k", jupyter, lambda found: found["token"] == "t0k"),
    "JUPYTER_TOKEN_FILE": Case("{file}", jupyter, lambda found: found["token"] == "from-a-file"),
    "JUPYTER_ALLOW_NO_AUTH": Case("yes", jupyter, lambda found: found["token"] == "", {"JUPYTER_TOKEN": ""}),
    "JUPYTER_PASSWORD_HASH": Case(HASH, jupyter, lambda found: found["hashed_password"] == HASH),
    "JUPYTER_PORT": Case("9999", jupyter, lambda found: found["port"] == 9999),
    "JUPYTER_BASE_URL": Case("/a/b", jupyter, lambda found: found["base_url"] == "/a/b/"),
    "JUPYTER_ALLOW_ORIGIN": Case(
        "https://a.example", jupyter, lambda found: "a\\.example" in found.get("allow_origin_pat", "")
    ),
    "JUPYTER_CERTFILE": Case("/c.pem", jupyter, lambda found: found.get("certfile") == "/c.pem"),
    "JUPYTER_KEYFILE": Case(
        "/k.pem", jupyter, lambda found: found.get("keyfile") == "/k.pem", {"JUPYTER_CERTFILE": "/c.pem"}
    ),
    "JUPYTER_LINK": Case("http://127.0.0.1:7777", jupyter, lambda found: ":7777/" in found["notice"]),
    "SSH_PUBLIC_KEY": Case(KEY, asked, lambda found: found.ssh is not None),
    "PUBLIC_KEY": Case(f"{KEY} second", ssh, lambda found: f"{KEY} second" in found),
    "GPUYARD_SSH_PORT": Case("2200", ssh, lambda found: "Port 2200\n" in found),
    "GPUYARD_SSH_STRICT": Case("yes", ssh, lambda found: ",curve25519-sha256" not in found),
    "GPUYARD_HOST_KEYS": Case("/mnt/keys", ssh, lambda found: found.endswith("\n/mnt/keys")),
    "GPUYARD_SERVICES": Case("none", asked, lambda found: found.services == ()),
    "GPUYARD_UID": Case("54321", user, lambda found: found is not None and found.uid == 54321),
    "GPUYARD_GID": Case("54321", user, lambda found: found is not None and found.gid == 54321),
    "GPUYARD_USER": Case("of-no-one", user, lambda found: found is not None and found.name == "of-no-one"),
    "GPUYARD_CHOWN": Case("{folder}", chown, lambda found: len(found) == 1),
    "GPUYARD_ALLOW_ROOT": Case("yes", user, lambda found: found is None),
    "GPUYARD_VENV": Case("{folder}/venv", asked, lambda found: found.overlay is not None),
    "GPUYARD_CACHE": Case("{folder}/cache", asked, lambda found: found.cache is not None),
    "GPUYARD_CA": Case("{authorities}", asked, lambda found: found.certificates is not None),
    "GPUYARD_PASS": Case("HF_TOKEN", sessions.select, lambda found: "HF_TOKEN" in found[0], {"HF_TOKEN": "t"}),
    "GPUYARD_LOG": Case("json", log.style, lambda found: found == "json"),
}


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Files and folders that values name; the image's user."""
    entry = pwd.struct_passwd(("trainer", "x", 1000, 1000, "", "/home/trainer", "/bin/bash"))
    monkeypatch.setattr(users, "image_entry", lambda: entry)
    monkeypatch.setattr(users, "_MAY_BE_GIVEN", (tmp_path,))
    (tmp_path / "token").write_text("from-a-file\n")
    return {"file": str(tmp_path / "token"), "folder": str(tmp_path), "authorities": str(ca.SYSTEM)}


def filled(text: str, places: dict[str, str]) -> str:
    """A value with its place put in."""
    for name, place in places.items():
        text = text.replace(f"{{{name}}}", place)
    return text


def looked(case: Case, env: Env) -> bool:
    """Whether the effect is seen; a refusal of the start without the setting is none."""
    try:
        return case.shows(case.look(env))
    except Refusal:
        return False


def test_every_setting_has_a_case() -> None:
    """A new one needs one, and one that is gone leaves."""
    assert set(CASES) == {setting.name for setting in settings.TABLE}


@pytest.mark.parametrize("setting", settings.TABLE, ids=lambda setting: setting.name)
def test_a_setting_has_an_effect(places: dict[str, str], setting: settings.Setting[Any]) -> None:
    """Seen with it, by either of its names, and not without it."""
    case = CASES[setting.name]
    value = filled(case.value, places)
    for name in filter(None, (setting.name, setting.also)):
        assert looked(case, {**case.beside, name: value}), name
    assert not looked(case, case.beside)


FREE = {"SSH_PUBLIC_KEY", "PUBLIC_KEY", "JUPYTER_CERTFILE", "JUPYTER_KEYFILE"}
"""Keys are checked line by line, certificates by OpenSSL: both have tests of their own."""


@pytest.mark.usefixtures("places")
@pytest.mark.parametrize("setting", [s for s in settings.TABLE if s.name not in FREE], ids=lambda setting: setting.name)
def test_a_bad_value_of_a_setting_is_refused(setting: settings.Setting[Any]) -> None:
    """Never ignored: the refusal names the variable, by the name that was used."""
    case = CASES[setting.name]
    for name in filter(None, (setting.name, setting.also)):
        with pytest.raises(Refusal) as refusal:
            case.look({**case.beside, "HF_TOKEN": "t", name: "/no \x01such:value"})
        assert name in str(refusal.value) or refusal.value.id == "token-invalid"


def test_settings_of_other_images_are_named_in_one_line() -> None:
    """With what to use; those that are off are not asked for."""
    found = settings.foreign({"NB_PREFIX": "/user/a", "GRANT_SUDO": "no", "CHOWN_HOME": "yes", "JUPYTER_PASSWORD": "x"})
    assert found is not None
    assert found.id == "setting-foreign"
    assert "NB_PREFIX (JUPYTER_BASE_URL)" in found.message
    assert "JUPYTER_PASSWORD_HASH" in found.message
    assert "GRANT_SUDO" not in found.message
    assert "/user/a" not in found.message
    assert settings.foreign({"GRANT_SUDO": "no", "NB_UID": "5", "GEN_CERT": ""}) is None


def test_a_name_with_a_slip_of_the_pen_is_named() -> None:
    """It would be ignored in silence; names that are the user's own, Jupyter's or another tool's are left alone."""
    wrong = {"GPUYARD_SERVICE": "ssh", "JUPYTER_TOKENS": "x", "GPUYARD_SSHPORT": "1", "SSH_PUBLIC_KEYS": "k"}
    own = {
        "GPUYARD_NODES": "2",
        "GPUYARD_IMAGE": "i",
        "GPUYARD_IMAGE_JSON": "/x",
        "JUPYTER_PATH": "/p",
        "HF_TOKEN": "t",
    }
    found = settings.unknown({**wrong, **own, **dict.fromkeys(CASES, "x"), "NB_UID": "5"})
    assert {notice.id for notice in found} == {"setting-unknown"}
    assert [notice.message.split()[0] for notice in found] == sorted(wrong)
    assert "GPUYARD_SERVICES?" in found[0].message


def test_no_setting_of_another_image_is_one_of_ours() -> None:
    """A name that works here would be called useless."""
    ours = {name for setting in settings.TABLE for name in (setting.name, setting.also)}
    assert not ours & set(settings.FOREIGN)
