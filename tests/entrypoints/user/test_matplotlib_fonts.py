"""Letters of Chinese, Japanese and Korean in Matplotlib's pictures, without any setting by the user."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.containers import Run

pytestmark = pytest.mark.image
DRAW = """
import json, logging, warnings
warnings.simplefilter("error")
said = []
logging.basicConfig(handlers=[type("Keep", (logging.Handler,), {"emit": lambda _, r: said.append(r.getMessage())})()])
import matplotlib
matplotlib.use("agg")
import matplotlib.pyplot as plt

def ink(text, **style):
    figure = plt.figure(figsize=(1, 1), dpi=60)
    figure.text(0.1, 0.4, text, fontsize=30, **style)
    figure.canvas.draw()
    pixels = bytes(figure.canvas.buffer_rgba())
    plt.close(figure)
    return pixels

letters = "中文日本語한국어ひカ"
drawn = {weight: [ink(letter, fontweight=weight) for letter in letters] for weight in ("normal", "bold")}
figure, axes = plt.subplots()
axes.set_title("中文 日本語 한국어 abc", fontweight="bold")
for kind in ("png", "svg", "pdf"):
    figure.savefig(f"/tmp/picture.{kind}")
blank, latin = ink(""), ink("A")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    missing = ink("\U000f0000")
print(json.dumps({
    "different": len({*drawn["normal"], blank, latin, missing}),
    "bold": sum(one not in (blank, missing) for one in drawn["bold"]),
    "letters": len(letters),
    "latin": latin == ink("A", family="DejaVu Sans"),
    "said": [line for line in said if "font cache" not in line],
}))
"""


def test_letters_are_drawn_and_nothing_is_warned_of(run: Run) -> None:
    """Each has a form of its own, which is not the box for a missing letter; Latin letters stay what they were."""
    ended = run("python", "-c", DRAW)
    assert ended.code == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert found["different"] == found["letters"] + 3
    assert found["bold"] == found["letters"]
    assert found["latin"]
    assert found["said"] == []


def test_a_users_own_settings_of_matplotlib_still_count(run: Run, tmp_path: Path) -> None:
    """A matplotlibrc in the working folder or in the home comes before the image's."""
    look = "import matplotlib; print(*matplotlib.rcParams['font.family'], sep=',')"
    script = f'python -c "{look}"; echo \'font.family: serif\' > matplotlibrc; python -c "{look}"'
    assert run("sh", "-c", script).stdout == "sans-serif,Droid Sans CJK Full\nserif\n"
    own = "import matplotlib, os; print('MATPLOTLIBRC' in os.environ, *matplotlib.rcParams['font.family'])"
    mounted = {str(tmp_path): {"bind": "/home/trainer/.config", "mode": "rw"}}
    (tmp_path / "matplotlib").mkdir()
    (tmp_path / "matplotlib" / "matplotlibrc").write_text("font.family: serif\n")
    # Matplotlib reads settings only from a folder that it could write to.
    for folder in (tmp_path, tmp_path / "matplotlib"):
        folder.chmod(0o777)
    assert run("python", "-c", own, volumes=mounted, environment={"XDG_CACHE_HOME": "/tmp"}).stdout == "False serif\n"


def test_letters_are_drawn_without_the_entry_point(run: Run) -> None:
    """As in docker exec and Apptainer, which start none of the image's programs."""
    ended = run("python", "-c", DRAW, entrypoint="")
    assert ended.code == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert found["different"] == found["letters"] + 3
    assert found["said"] == []
