"""Every printed command is one that its program takes; a program of no class fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from gpuyard.render.commands_page import commands
from tests.docs.printed import Printed, embedded, of_pages, of_sources, of_tables, of_templates, options, simple
from tests.docs.programs import CLI, fault, taken

ENOUGH = {of_pages: 250, of_templates: 3, of_tables: 150, of_sources: 150}
"""Fewer than these would mean that the search no longer sees them."""


KNOWN = {"gpuyard clean 1 --dry-run shows them": "the value stands for options, which tests of clean see"}
"""Texts that are not commands as they stand in the code, and why."""


def judged(words: list[str]) -> str:
    """What is wrong with a simple command."""
    try:
        return fault(words)
    except KeyError as error:
        return str(error)


def wrong(printed: Printed) -> str:
    """What is wrong with a printed command; empty when nothing is."""
    try:
        lines = list(simple(printed.text))
    except ValueError as error:
        return f"not a line of shell: {error}"
    found = (judged(words) if printed.pasted else named(words) for words in lines)
    return next((said for said in found if said), "")


def named(words: list[str]) -> str:
    """The same for a command in a sentence: arguments may be missing, and the sentence may go on after it."""
    first = judged(words)
    if not first or "Missing" in first or not judged([*words, "1"]):
        return ""
    for end in range(len(words) - 1, 1, -1):
        tail = words[end:]
        if tail[0].isalpha() and tail[0].islower() and not any(word.startswith("-") for word in tail):
            said = judged(words[:end])
            if not said or "Missing" in said:
                return ""
    return first


@pytest.mark.parametrize("source", ENOUGH, ids=lambda source: source.__name__)
def test_every_printed_command_is_one_that_its_program_takes(source: Callable[[], Iterator[Printed]]) -> None:
    """In pages, in tables of messages, and in texts of the code."""
    printed = list(source())
    assert len(printed) >= ENOUGH[source]
    faults = {f"{one.where}: {one.text}": said for one in printed if one.text not in KNOWN and (said := wrong(one))}
    assert not faults, "\n".join(f"{where}\n    {said}" for where, said in faults.items())


def test_every_option_that_a_message_names_exists() -> None:
    """Of docker run, or of a command of gpuyard."""
    known = taken("docker", "run") | {
        option
        for _, one in commands(CLI)
        for parameter in one.params
        for option in parameter.opts + parameter.secondary_opts
    }
    found = list(options())
    assert len(found) >= 50
    assert [(where, option) for where, option in found if option not in known] == []


@pytest.mark.parametrize(
    "text",
    [
        *("gpuyard bild", "gpuyard pick GPU", "gpuyard run --gpu all", "verify --onyl shm", "verify --only no-such"),
        *("docker run --shm 8g IMAGE", "docker run --shm-size=x IMAGE", "docker run --rm IMAGE verify --quik"),
        *("docker compse up", "docker compose up --bogus", "make tset", "pip install --reinstall torch", "nonesuch -x"),
        *(
            "python -m examples.classify --epoch x",
            "python -m examples.none",
            "gpuyard list | nonesuch",
            "git chekout x",
        ),
        *("verify explain no-such-id", "ssh -Z host", "docker run IMAGE python -m verify --nothing"),
    ],
)
def test_a_command_that_cannot_work_is_seen(text: str) -> None:
    """Of each program; and a program of no class."""
    assert wrong(Printed("here", text, True))


@pytest.mark.parametrize(
    ("sentence", "commands"),
    [
        ("put it back: gpuyard build", ["gpuyard build"]),
        ("run gpuyard publish again: it continues", ["gpuyard publish again"]),
        ("made by gpuyard image by image, verify it", []),
        ("free some (gpuyard clean, docker system df), then", ["gpuyard clean", "docker system df"]),
        ("make a key, or make verify; docker run goes first", ["make verify"]),
        ("uv pip install x and docker run --gpus all ...", ["docker run --gpus all", "uv pip install x"]),
    ],
)
def test_commands_are_found_in_sentences(sentence: str, commands: list[str]) -> None:
    """Words that are not commands are left alone."""
    assert list(embedded(sentence)) == commands


@pytest.mark.parametrize(
    ("text", "said"),
    [("gpuyard run --her in a folder", "No such option"), ("gpuyard lock says so", ""), ("gpuyard pick GPU", "extra")],
)
def test_what_follows_in_a_sentence_hides_no_fault(text: str, said: str) -> None:
    """An option or an argument that is not accepted does not count as prose."""
    assert (said in wrong(Printed("here", text, False))) if said else not wrong(Printed("here", text, False))
