"""Markdown that grows: every line is given out once, in order, and nothing is lost."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.console.recording_screen import words

from steno.report.markdown_renderer import MarkdownStream, markdown_lines
from steno.sanitize.terminal import StyledLine

TEXT = """\
# Both curves on one axis

The measured one is drawn **on top**, with gaps where the gauge was silent.

```python
def draw(axis):
    for curve in curves:
        axis.plot(curve)

    return axis
```

- one thing
- another thing

| a | b |
|---|---|
| 1 | 2 |

And that is all.
"""


def render(text: str) -> list[StyledLine]:
    return list(markdown_lines(text, 60))


def grown(pieces: list[str], room: int = 6) -> list[str]:
    growing = MarkdownStream(render)
    given_out: list[StyledLine] = []
    for piece in pieces:
        growing.feed(piece)
        given_out += growing.take_settled(room)
    return [line.rstrip() for line in words([*given_out, *growing.finish()])]


def filled(lines: list[str]) -> list[str]:
    return [line for line in lines if line.strip()]


def test_a_text_that_comes_at_once_is_the_text() -> None:
    whole = [line.rstrip() for line in words(render(TEXT))]
    assert filled(grown([TEXT])) == filled(whole)


@settings(max_examples=40)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=60), st.integers(1, 8))
def test_however_it_is_cut_each_line_comes_once(sizes: list[int], room: int) -> None:
    pieces, rest = [], TEXT
    for size in sizes:
        pieces.append(rest[:size])
        rest = rest[size:]
    whole = filled([line.rstrip() for line in words(render(TEXT))])
    assert filled(grown([*pieces, rest], room)) == whole


def test_a_paragraph_that_is_over_is_given_out_and_the_next_is_not() -> None:
    growing = MarkdownStream(render)
    growing.feed("First.\n\nSecond is on its w")
    assert words(growing.take_settled(6)) == ["First."]
    assert words(growing.open_tail(6)) == ["Second is on its w"]
    assert growing.take_settled(6) == []


def test_what_is_shown_live_stays_small_however_long_the_code() -> None:
    growing = MarkdownStream(render)
    growing.feed("```python\n")
    given_out = 0
    for number in range(300):
        growing.feed(f"line_{number} = {number}\n")
        given_out += len(growing.take_settled(5))
        assert len(growing.open_tail(100)) <= 8
    assert given_out > 280


def test_a_long_list_is_given_out_item_by_item() -> None:
    growing = MarkdownStream(render)
    given_out: list[StyledLine] = []
    for number in range(200):
        growing.feed(f"- thing {number}\n")
        given_out += growing.take_settled(5)
        assert len(growing.open_tail(100)) <= 2
    lines = words([*given_out, *growing.finish()])
    assert [line.strip() for line in lines] == [f"• thing {number}" for number in range(200)]


def test_a_table_is_given_out_only_when_it_is_whole() -> None:
    growing = MarkdownStream(render)
    growing.feed("| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 30)
    assert growing.take_settled(4) == []
    growing.feed("\nAfter it.")
    assert len(growing.take_settled(4)) > 30


def test_escapes_of_the_model_do_not_act() -> None:
    lines = grown(["bad \x1b[2J\x1b]0;title\x07 \u202ecod"])
    assert lines == ["bad ␛[2J␛]0;title␇ \\u{202e}cod"]


def test_a_heading_begins_where_everything_else_does() -> None:
    assert words(list(markdown_lines("# A heading\n\nAnd words.", 40))) == ["A heading", "", "And words."]
