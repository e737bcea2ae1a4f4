"""What people asked, as it was typed: line breaks stay, code is set as code."""

import re
from typing import Final

import msgspec

from steno.safe.html import Html, escaped
from steno.session.story.prompts import Prompt
from steno.web.bodies.pictures import Shown
from steno.web.render.code import code_block

__all__ = ["Asked", "asked", "plain"]

_FENCE: Final = re.compile(r"^```([\w+-]*)[^\n]*\n(.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)
_CODE: Final = re.compile(r"`([^`\n]+)`")
_BLANK: Final = re.compile(r"\n[ \t]*\n")
_LINES: Final = 40
_LETTERS: Final = 4_000
_LONGEST: Final = 200_000
_TAGS: Final = {
    "notification": "A background task reports",
    "teammate": "From a teammate",
    "agent": "Told to the sub-agent",
    "fork": "Told to a fork",
    "summary": "Going on from a summary",
    "command": "Slash command",
    "shell": "Shell command",
    "other": "Not typed by a person",
}


class Asked(msgspec.Struct, frozen=True):
    """What a template draws of a prompt."""

    shown: Html
    rest: Html | None = None
    lines: int = 0
    tag: str = ""
    images: tuple[Shown, ...] = ()
    others: int = 0
    """What was attached and is no picture."""


def asked(prompt: Prompt, images: tuple[Shown, ...] = ()) -> Asked:
    """Return a prompt for a page; of a long one the beginning, and the rest."""
    text = prompt.text.strip("\n")
    if prompt.origin == "shell":
        text = f"! {text}"
    first, rest = _cut(text)
    return Asked(
        plain(first),
        plain(rest) if rest else None,
        text.count("\n") + 1,
        _TAGS.get(prompt.origin, ""),
        images,
        max(0, prompt.images - len(images)),
    )


def _cut(text: str) -> tuple[str, str]:
    lines = text.split("\n")
    if len(lines) <= _LINES and len(text) <= _LETTERS:
        return text, ""
    first = "\n".join(lines[: _LINES // 2])
    if len(first) > _LETTERS:
        first = first[: first.rfind(" ", 0, _LETTERS // 2) + 1 or _LETTERS // 2]
    return first, text[len(first) :].lstrip("\n")


def plain(text: str) -> Html:
    r"""Return words as they were typed.

    >>> plain("Fix `a<b`\nnow")
    '<p>Fix <code>a&lt;b</code>\nnow</p>'
    """
    if "```" not in text or len(text) > _LONGEST:
        return Html(_paragraphs(text))
    made = ""
    end = 0
    for found in _FENCE.finditer(text):
        made += f'{_paragraphs(text[end : found.start()])}<div class="box">'
        made += f"{code_block(found[2], found[1])}</div>"
        end = found.end()
    return Html(f"{made}{_paragraphs(text[end:])}")


def _paragraphs(text: str) -> str:
    parts = [part.strip("\n") for part in _BLANK.split(text)]
    return "".join([f"<p>{_line(part)}</p>" for part in parts if part])


def _line(text: str) -> str:
    # Code takes every second place: what stands between two marks.
    parts = _CODE.split(text) if "`" in text else [text]
    shown = [escaped(part) for part in parts]
    shown[1::2] = [f"<code>{code}</code>" for code in shown[1::2]]
    return "".join(shown)
