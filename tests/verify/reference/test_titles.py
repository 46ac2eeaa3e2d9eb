"""The titles are a clean data set: two equal classes of distinct, plain sentences."""

from __future__ import annotations

from verify.reference.titles import CLASSES, TITLES
from verify.reference.titles_economy import ECONOMY
from verify.reference.titles_sport import SPORT


def test_both_classes_are_equal_in_number_and_together_at_least_200() -> None:
    """No class wins by its size."""
    assert len(SPORT) == len(ECONOMY)
    assert len(TITLES) >= 200


def test_no_title_occurs_twice() -> None:
    """Also not in another case."""
    assert len({title.lower() for title, _ in TITLES}) == len(TITLES)


def test_each_title_is_a_plain_sentence_of_some_words() -> None:
    """ASCII, 4 to 16 words, single spaces, a capital first, no full stop."""
    for title, _ in TITLES:
        assert title.isascii(), title
        assert 4 <= len(title.split()) <= 16, title
        assert title == " ".join(title.split()).rstrip("."), title
        assert title[0].isupper(), title


def test_labels_are_indices_of_the_class_names() -> None:
    """0 for sport, 1 for economy."""
    assert {CLASSES[label] for title, label in TITLES if title in SPORT} == {"sport"}
    assert {CLASSES[label] for title, label in TITLES if title in ECONOMY} == {"economy"}


def test_the_classes_do_not_share_their_openings() -> None:
    """The titles are varied: no first word opens more than a tenth of a class."""
    for titles in (SPORT, ECONOMY):
        firsts = [title.split()[0] for title in titles]
        assert max(firsts.count(word) for word in firsts) <= len(titles) // 10
