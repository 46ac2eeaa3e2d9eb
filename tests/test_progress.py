"""A long step's progress: no bar for nothing, no speed before it was measured."""

from __future__ import annotations

from rich.progress import Progress

from gpuyard.progress import Bar, Meter, Moved, meter


def shown(seconds: float, count: int) -> str:
    """What the bar says after so many seconds and bytes."""
    clock = iter([0.0, *[seconds] * 50])
    progress = Progress(get_time=lambda: next(clock))
    bar = Bar("downloads", 3, progress)
    bar.moved(count)
    return Moved().render(progress.tasks[0]).plain


def test_no_speed_is_shown_before_it_was_measured() -> None:
    """The first bytes of a fast disk would show terabytes a second."""
    assert shown(0.001, 13_300_000_000).endswith("MB")
    assert "MB/s" not in shown(0.001, 13_300_000_000)
    assert shown(2.0, 20_000_000) == "20.0 MB, 10.0 MB/s"
    assert shown(5.0, 0) == ""


def test_a_step_over_nothing_draws_nothing() -> None:
    """0 of 0 is not progress."""
    with meter("downloads", 0) as found:
        assert type(found) is Meter
