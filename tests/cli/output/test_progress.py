"""The bar: seen at a terminal alone, gone at the end, never wider than the screen."""

import io

import pytest

from steno.cli.output.progress import ProgressBar


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


def bar_on(stream: io.StringIO, clock: Clock, total: int = 1_000_000) -> ProgressBar:
    return ProgressBar(total, "Checking", stream=stream, clock=clock)


def screen_of(written: str) -> str:
    """Return what stands on the line after everything was written."""
    line: list[str] = []
    for part in written.split("\r"):
        line[: len(part)] = part
    return "".join(line).rstrip()


def test_it_shows_share_size_rate_and_time_left() -> None:
    stream, clock = Terminal(), Clock()
    bar = bar_on(stream, clock)
    clock.time += 2
    bar.advance(500_000)
    shown = screen_of(stream.getvalue())
    assert "Checking  ██████████··········   50%" in shown
    assert "500 kB of 1.0 MB" in shown
    assert "250 kB/s" in shown
    assert shown.endswith("2 s left")


def test_it_is_gone_at_the_end() -> None:
    stream, clock = Terminal(), Clock()
    with bar_on(stream, clock) as bar:
        clock.time += 2
        bar.advance(500_000)
    assert screen_of(stream.getvalue()) == ""
    assert "\n" not in stream.getvalue()
    assert "\x1b" not in stream.getvalue()


def test_a_shorter_line_leaves_nothing_of_a_longer_one() -> None:
    stream, clock = Terminal(), Clock()
    bar = bar_on(stream, clock)
    clock.time += 3600
    bar.advance(1)
    clock.time += 1
    bar.advance(999_999)
    assert screen_of(stream.getvalue()).endswith("/s")


def test_what_is_quickly_done_shows_nothing() -> None:
    stream, clock = Terminal(), Clock()
    with bar_on(stream, clock) as bar:
        clock.time += 0.3
        bar.advance(1_000_000)
    assert stream.getvalue() == ""


def test_it_is_not_drawn_for_every_byte() -> None:
    stream, clock = Terminal(), Clock()
    bar = bar_on(stream, clock)
    clock.time += 1
    for _ in range(1000):
        bar.advance(1)
    assert stream.getvalue().count("\r") == 1


@pytest.mark.parametrize("term", ["", "dumb"])
def test_nobody_but_a_terminal_sees_it(term: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", term or "xterm")
    stream, clock = (Terminal() if term else io.StringIO()), Clock()
    with bar_on(stream, clock) as bar:
        clock.time += 2
        bar.advance(500_000)
    assert stream.getvalue() == ""


def test_more_than_was_announced_is_all_of_it() -> None:
    stream, clock = Terminal(), Clock()
    bar = bar_on(stream, clock)
    clock.time += 2
    bar.advance(3_000_000)
    shown = screen_of(stream.getvalue())
    assert "100%" in shown
    assert "left" not in shown


def test_without_a_total_it_only_counts() -> None:
    stream, clock = Terminal(), Clock()
    bar = bar_on(stream, clock, total=0)
    clock.time += 2
    bar.advance(500_000)
    assert screen_of(stream.getvalue()) == "Checking  500 kB  250 kB/s"


def test_it_is_never_wider_than_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    stream, clock = Terminal(), Clock()
    bar = bar_on(stream, clock)
    clock.time += 2
    bar.advance(500_000)
    assert len(screen_of(stream.getvalue())) <= 29


def test_a_label_cannot_act_on_the_terminal() -> None:
    stream, clock = Terminal(), Clock()
    bar = ProgressBar(10, "\x1b[2J\nevil", stream=stream, clock=clock)
    clock.time += 2
    bar.advance(5)
    assert "\x1b" not in stream.getvalue()
    assert "\n" not in stream.getvalue()
