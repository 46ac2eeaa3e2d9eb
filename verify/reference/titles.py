"""News titles in two classes, written for this project: what the sentence classifier learns from.

The titles are plain ASCII, each occurs once, and both classes have the same number of them.
"""

from __future__ import annotations

from typing import Tuple

from verify.reference.titles_economy import ECONOMY
from verify.reference.titles_sport import SPORT

CLASSES: Tuple[str, str] = ("sport", "economy")

TITLES: Tuple[Tuple[str, int], ...] = tuple((title, 0) for title in SPORT) + tuple((title, 1) for title in ECONOMY)
