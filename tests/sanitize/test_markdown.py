"""Markdown of strangers inside of ours: as a reader of Markdown takes it, nothing of it acts."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from steno.sanitize.markdown import escape_markdown

READER = MarkdownIt("commonmark", {"html": True})
ACTS = frozenset(("html_block", "html_inline", "image"))
PIECES = (
    *("<script>x()</script>", "<img src=x onerror=x()>", "![a](http://far/)", "<!-- ", "<div>"),
    *("`", "``", "```", "````", "~~~", "```sh", "~~~ `x`", "\\", "# ", "## ", "===", "---", "> "),
    *("- ", "1. ", "    ", "  ", "\t", "\n", "\n\n", "word", "[a]: <b>", "|"),
)


def tokens(text: str) -> list[Token]:
    return [each for token in READER.parse(text) for each in (token, *(token.children or ()))]


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_no_words_of_a_session_act_or_swallow_what_comes_behind(words: str) -> None:
    quoted = "".join(f"> {line}\n" for line in escape_markdown(words).split("\n"))
    text = f"{quoted}\n- step\n\n{escape_markdown(words, heading_offset=2)}\n\n## Turn 2\n\nend"
    found = tokens(text)
    assert not [token for token in found if token.type in ACTS]
    headings = [
        after.content
        for token, after in pairwise(found)
        if token.type == "heading_open" and token.tag in ("h1", "h2") and not token.level
    ]
    assert headings == ["Turn 2"]


@pytest.mark.parametrize(
    "words",
    [
        "\\<script>x()</script>",
        "``` `\n<script>x()</script>\n```",
        "\\`<img src=x onerror=x()>`",
        "``<img src=x onerror=x()>`",
        "```\n  ```\n<script>x()</script>\n```",
        "a ` b\n`<img src=x onerror=x()>`",
        "- a\n\n  ```\n  code\n<script>x()</script>\n  ```",
    ],
)
def test_what_only_looks_like_code_is_none(words: str) -> None:
    assert not [token for token in tokens(escape_markdown(words)) if token.type in ACTS]


def test_code_stays_as_it_is() -> None:
    made = escape_markdown("# Use\n\n1. so:\n   ```sh\n   # a note\n   echo <b>\n   ```", heading_offset=2)
    assert made == "### Use\n\n1. so:\n```sh\n# a note\necho <b>\n```"
    assert escape_markdown("a `<b>` and `c`") == "a `<b>` and `c`"
