"""What an image claims is read whole: the line's claims, and those of a project on top of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from verify.checks.image.packages import evaluate_strays
from verify.claims import BadClaims, load_claims
from verify.model import Status


def written(folder: Path, **files: object) -> Path:
    """Writes claims; the path of image.json."""
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder / "image.json"


def test_a_projects_packages_are_claimed_beside_the_images(tmp_path: Path) -> None:
    """Both locks count: what the project locked is not a stray, what nobody locked still is."""
    image = {"packages": {"torch": "1"}, "line": "2.9"}
    path = written(tmp_path, image=image, project={"name": "news", "packages": {"einops": "2"}})
    claims = load_claims(path)
    assert claims.image["packages"] == {"torch": "1", "einops": "2"}
    assert claims.image["project"] == "news"
    facts = {"installed": {"torch": "1", "einops": "2"}, "times": {}}
    assert evaluate_strays(facts, claims).status is Status.PASS
    (tmp_path / "alone").mkdir()
    alone = load_claims(written(tmp_path / "alone", image=image))
    assert evaluate_strays(facts, alone).status is Status.FAIL


def test_claims_that_are_not_an_object_are_refused(tmp_path: Path) -> None:
    """Of the image, and of the project."""
    for name in ("image", "project"):
        folder = tmp_path / name
        folder.mkdir()
        path = written(folder, **{"image": {}, name: ["x"]})
        with pytest.raises(BadClaims):
            load_claims(path)
