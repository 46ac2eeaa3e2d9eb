"""Data of the user's own: each fault is one line that names the place; none needs torch."""

from __future__ import annotations

from pathlib import Path

import pytest
from examples import options, tables
from examples.errors import ExampleError


def written(folder: Path, text: str | bytes) -> Path:
    """A titles.csv with that content."""
    file = folder / "titles.csv"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def test_titles_have_the_number_of_their_label_in_the_alphabet(tmp_path: Path) -> None:
    """Commas in quotes, empty lines and a byte order mark are accepted."""
    file = written(tmp_path, '\ufefflabel,title\nsport,"Late goal, great joy"\n\neconomy,Rates rise\n')
    assert tables.read_titles(file) == ([("Late goal, great joy", 1), ("Rates rise", 0)], ("economy", "sport"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1: found ''; expected label,title"),
        ("title,label\n", "line 1: found 'title,label'"),
        ("label,title\nsport,Goal\n\nsport\n", "line 4: found 1 field(s) in 'sport'"),
        ("label,title\nsport,Goal, and joy\n", "line 2: found 3 field(s)"),
        ("label,title\nsport, \n", "line 2: found 2 field(s) in 'sport, '"),
        ('label,title\nsport,"Goal" x\n', "line 2: "),
        ("label,title\nsport,Goal\nsport,Again\n", "1 label(s) in 2 rows"),
        (b"label,title\nsport,Goal\nsport,F\xfcr\n", "line 3: not UTF-8"),
    ],
)
def test_a_malformed_row_is_named_by_its_line(tmp_path: Path, text: str | bytes, said: str) -> None:
    """With what was found there."""
    with pytest.raises(ExampleError) as raised:
        tables.read_titles(written(tmp_path, text))
    assert said in str(raised.value)


def test_a_missing_folder_says_how_to_mount_one(tmp_path: Path) -> None:
    """And that the example has data of its own."""
    with pytest.raises(ExampleError, match=r"No such file.*docker run -v .*leave --data out"):
        options.data_folder(tmp_path / "none", "*.csv", "x")


def test_an_empty_folder_says_what_it_should_hold(tmp_path: Path) -> None:
    """And what it holds."""
    with pytest.raises(ExampleError, match=r"holds nothing; expected lines"):
        options.data_folder(tmp_path, "*.csv", "lines")
    (tmp_path / "other.txt").touch()
    with pytest.raises(ExampleError, match=r"holds other\.txt"):
        options.data_folder(tmp_path, "*.csv", "lines")


def test_the_usual_folder_may_be_empty_or_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Then the example's own data is used; files of the right kind are read, and that is said."""
    monkeypatch.setattr(options, "DATA", tmp_path / "data")
    assert options.data_folder(None, "*.csv", "") is None
    (tmp_path / "data").mkdir()
    assert options.data_folder(None, "*.csv", "") is None
    (tmp_path / "data" / "titles.csv").touch()
    assert capsys.readouterr().err == ""
    assert options.data_folder(None, "*.csv", "") == tmp_path / "data"
    assert capsys.readouterr().err == f"learns from {tmp_path}/data/*.csv\n"


def test_text_is_read_file_by_file_and_may_not_be_empty(tmp_path: Path) -> None:
    """By name, without empty lines."""
    (tmp_path / "b.txt").write_text("third\n")
    (tmp_path / "a.txt").write_text("first\n\nsecond\n")
    assert tables.read_texts(tmp_path) == ["first", "second", "third"]
    for file in tmp_path.iterdir():
        file.write_text("\n")
    with pytest.raises(ExampleError, match="are empty"):
        tables.read_texts(tmp_path)


@pytest.mark.parametrize("words", [["--epochs", "0"], ["--learning-rate", "-1"], ["--learning-rate", "nan"], ["--x"]])
def test_wrong_words_end_with_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """As argparse has it, with the word named."""
    with pytest.raises(SystemExit) as raised:
        options.parser("x", "", 1, 1, 1.0).parse_args(words)
    assert raised.value.code == 2
    assert words[0] in capsys.readouterr().err
