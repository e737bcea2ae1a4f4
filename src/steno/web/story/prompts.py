"""What people asked, as it was typed: line breaks stay, code is set as code."""

import re
from typing import Final

import msgspec
from markupsafe import Markup

from steno.safe.html import words
from steno.session.story.prompts import Prompt
from steno.web.bodies.pictures import Shown
from steno.web.render.code import code_block

__all__ = ["Asked", "asked", "plain"]

_FENCE: Final = re.compile(r"^```([\w+-]*)[^\n]*\n(.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)
_CODE: Final = re.compile(r"`([^`\n]+)`")
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

    shown: Markup
    rest: Markup | None = None
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


def plain(text: str) -> Markup:
    r"""Return words as they were typed.

    >>> str(plain("Fix `a<b`\nnow"))
    '<p>Fix <code>a&lt;b</code>\nnow</p>'
    """
    made: list[Markup] = []
    end = 0
    for found in _FENCE.finditer(text) if len(text) <= _LONGEST else ():
        made.append(_paragraphs(text[end : found.start()]))
        made.append(Markup('<div class="box">{}</div>').format(code_block(found[2], found[1])))
        end = found.end()
    made.append(_paragraphs(text[end:]))
    return Markup("").join(made)


def _paragraphs(text: str) -> Markup:
    parts = [part.strip("\n") for part in re.split(r"\n[ \t]*\n", text)]
    return Markup("").join(Markup("<p>{}</p>").format(_line(part)) for part in parts if part)


def _line(text: str) -> Markup:
    made: list[Markup] = []
    end = 0
    for found in _CODE.finditer(text):
        made.append(words(text[end : found.start()]))
        made.append(Markup("<code>{}</code>").format(words(found[1])))
        end = found.end()
    made.append(words(text[end:]))
    return Markup("").join(made)
