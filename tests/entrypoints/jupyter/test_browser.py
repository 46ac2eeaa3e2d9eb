"""JupyterLab in a browser, as people use it: log in, run the first notebook, see its picture, type in a terminal.

Pictures of the steps lie under ``build/browser`` afterwards, to be looked at.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from docker.models.containers import Container
from playwright.sync_api import Page, expect, sync_playwright

from gpuyard import paths

from ..conftest import host_port, log_of, wait_for
from .web import PORTS, healthy

pytestmark = pytest.mark.image
PICTURES = paths.ROOT / "build" / "browser"
TOKEN = "browser-t0ken"
PATIENCE = 90_000
MEMORY = re.compile(r"Mem:\s+[\d.]+ / 3072.00 MB")


@pytest.fixture(scope="module")
def lab(run_container: Any) -> Iterator[Container]:
    """A server with a token of the user's own and a limit of memory."""
    with run_container(None, environment={"JUPYTER_TOKEN": TOKEN}, ports=PORTS, mem_limit="3g") as container:
        healthy(container)
        yield container


@pytest.fixture(scope="module")
def page(lab: Container) -> Iterator[Page]:
    """A browser's page at the server's door."""
    program = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chromium-browser"))), None)
    assert program, "chromium is missing: docker/test-tools.sh installs it"
    PICTURES.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        # Its sandbox needs a user that is not root.
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        page.set_default_timeout(PATIENCE)
        page.goto(f"http://127.0.0.1:{host_port(lab, 8888)}/lab")
        yield page
        picture(page, "last")
        browser.close()


def picture(page: Page, name: str) -> Path:
    """A picture of the page as it is now."""
    file = PICTURES / f"{name}.png"
    page.screenshot(path=file)
    return file


def run_cell(page: Page, text: str) -> None:
    """Runs the cell that holds the text."""
    cell = page.locator(".jp-CodeCell", has_text=text)
    cell.locator(".jp-InputArea-editor").click()
    page.keyboard.press("Control+Enter")
    expect(cell.locator(".jp-InputArea-prompt").first).to_have_text(re.compile(r"\[\d+\]:"), timeout=PATIENCE)


def menu(page: Page, *path: str) -> None:
    """Chooses an entry of the menu bar."""
    page.locator("#jp-MainMenu").get_by_text(path[0], exact=True).click()
    for word in path[1:]:
        page.locator(".lm-Menu-itemLabel").get_by_text(word, exact=True).click()


def test_a_token_logs_in(page: Page) -> None:
    """A wrong one is told so; the right one opens the workspace."""
    for token in ("wrong", TOKEN):
        page.locator("#password_input").fill(token)
        page.locator("#login_submit").click()
    expect(page.locator(".jp-DirListing-item", has_text="first-steps.ipynb")).to_be_visible(timeout=PATIENCE)
    expect(page.locator("#jp-main-statusbar")).to_contain_text(MEMORY, timeout=PATIENCE)
    expect(page.get_by_text("official Jupyter news")).to_have_count(0)
    picture(page, "1-logged-in")


def test_the_first_notebook_trains_and_shows_its_picture(page: Page) -> None:
    """Opened by hand and run cell by cell."""
    page.locator(".jp-DirListing-item", has_text="first-steps.ipynb").dblclick()
    expect(page.locator("#jp-main-statusbar")).to_contain_text("| Idle", timeout=PATIENCE)
    for text in ("import torch", "torch.manual_seed", "plt.subplots"):
        run_cell(page, text)
    expect(page.get_by_text(re.compile(r"loss: 0\.\d+ at the start, 0\.\d+ at the end"))).to_be_visible()
    shown = page.locator(".jp-OutputArea-output img")
    expect(shown).to_be_visible(timeout=PATIENCE)
    size = shown.evaluate("image => [image.naturalWidth, image.naturalHeight]")
    assert min(size) > 200
    shown.scroll_into_view_if_needed()
    picture(page, "2-trained")


def test_memory_stands_in_the_status_bar(page: Page) -> None:
    """The container's own limit, not the machine's memory."""
    expect(page.locator("#jp-main-statusbar")).to_contain_text(MEMORY, timeout=PATIENCE)


def test_a_terminal_takes_what_is_typed(page: Page, lab: Container) -> None:
    """As trainer, with the image's Python."""
    menu(page, "File", "New", "Terminal")
    page.locator(".jp-Terminal").click()
    wait_for(lambda: b"bash" in lab.exec_run("ps -eo comm=,tty=").output.split(b"pts")[0], 30)
    page.keyboard.type('command -v python | tee typed; id -un >> typed; python -c "print(6 * 7)"\n', delay=5)
    wait_for(lambda: lab.exec_run("cat /workspace/typed").output == b"/opt/venv/bin/python\ntrainer\n", 30)
    page.wait_for_timeout(1000)
    picture(page, "3-terminal")


def test_the_server_has_nothing_to_complain_of(page: Page, lab: Container) -> None:
    """Only the wrong token and Docker's small shared memory are in the log; the machine has no GPU to watch."""
    page.wait_for_timeout(100)
    faults = [line for line in log_of(lab).splitlines() if " WARNING " in line or " ERROR " in line]
    expected = ("Invalid credentials", "401", "start[shm-small]")
    assert [line for line in faults if not any(text in line for text in expected)] == []
