"""The pieces that bodies are made of: a box, facts, a stretch of a long text, lists, pictures."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final, TypedDict, Unpack
from urllib.parse import urlsplit

import msgspec

from steno.report import words as say
from steno.safe.html import Html, escaped
from steno.web.bodies.about import About, Call
from steno.web.paint import part
from steno.web.render.ansi import screen
from steno.web.render.code import code_block
from steno.web.render.markdown import marked
from steno.web.render.pieces import icon_of, path_html

__all__ = [
    "Door",
    "Fact",
    "Window",
    "box",
    "call_doors",
    "clipped",
    "coloured",
    "door_row",
    "facts",
    "joined",
    "note",
    "paths",
    "printed",
    "prose",
    "raw_doors",
    "table",
    "time_of_day",
    "web_address",
    "window",
]

_LINES: Final = 30
_LETTERS: Final = 12_000
_FULL_LINES: Final = 2_000
_FULL_LETTERS: Final = 400_000
_SLACK: Final = 4
"""Lines; so few are not worth a cut."""
_SAID: Final = 3_000
"""Letters of what is short by nature: a name, a title, a remark."""
_ITEMS: Final = 60
_FULL_ITEMS: Final = 5_000


class Door(msgspec.Struct, frozen=True):
    """A way to somewhere else, or to the same thing shown otherwise."""

    words: str
    address: str
    stays: bool = False
    """Whether it leads to the same thing; a script may then open it in place."""


class Fact(msgspec.Struct, frozen=True):
    """A name and what is so."""

    name: str
    value: str
    mood: str = ""
    """`bad`, `warn` or `ok`, where it is worth a colour."""


class Window(msgspec.Struct, frozen=True):
    """A stretch of a text, and how much of it that is."""

    text: str
    first: int = 1
    """The number of its first line."""
    said: str = ""
    """How much of the whole is shown, if it is not all."""
    doors: tuple[Door, ...] = ()


_WHOLE: Final = Window("")


def joined(*made: Html) -> Html:
    """Return some pieces one after another."""
    return Html("".join(made))


# Texts


def window(
    text: str, about: About, *, offset: int | None = None, tail: bool = False, lines: int = _LINES
) -> Window:
    """Return as much of a text as is wanted, and the doors to the rest.

    `offset` is the record it stands in, for where a step has no address. With `tail` it is the end
    that is shown first.
    """
    most, letters = (_FULL_LINES, _FULL_LETTERS) if about.full else (lines, _LETTERS)
    begin = min(about.begin, max(0, len(text) - 1)) if about.full and about.begin > 0 else 0
    few = most + _SLACK
    # What has fewer letters has fewer lines.
    if not begin and (len(text) < few or (len(text) <= letters and text.count("\n") < few)):
        return Window(text)
    if tail and not about.full:
        begin = _last_lines(text, most, letters)
        end = len(text)
    else:
        end = _next_lines(text, begin, most, letters)
    first = text.count("\n", 0, begin) + 1
    shown = text[begin:end].removesuffix("\n")
    said = _amount(text, first, first + shown.count("\n"), (begin, end))
    return Window(shown, first, said, tuple(_doors(about, offset, begin, end, len(text))))


def _next_lines(text: str, begin: int, lines: int, letters: int) -> int:
    """Return where a stretch ends: behind so many lines, inside one only where it is too long."""
    end = begin
    for _ in range(lines):
        found = text.find("\n", end, begin + letters)
        if found < 0:
            rest = min(len(text), begin + letters)
            return rest if end == begin or rest == len(text) else end
        end = found + 1
    return end


def _last_lines(text: str, lines: int, letters: int) -> int:
    begin = len(text.rstrip("\n"))
    low = max(0, begin - letters)
    for _ in range(lines):
        found = text.rfind("\n", low, begin)
        if found < 0:
            return low
        begin = found
    return begin + 1


def _amount(text: str, first: int, last: int, stretch: tuple[int, int]) -> str:
    begin, end = stretch
    whole = text.rstrip("\n").count("\n") + 1
    inside = (begin and text[begin - 1] != "\n") or (end < len(text) and text[end - 1] != "\n")
    if inside:
        return f"letters {begin + 1:,} to {end:,} of {len(text):,}"
    if first == 1:
        return f"{min(last, whole):,} of {say.count(whole, 'line')}"
    if end == len(text):
        return f"the last {whole - first + 1:,} of {say.count(whole, 'line')}"
    return f"lines {first:,} to {min(last, whole):,} of {whole:,}"


def _doors(about: About, offset: int | None, begin: int, end: int, whole: int) -> Iterable[Door]:
    if about.full:
        if begin:
            yield Door("From the start", about.shown(full=1), stays=True)
        if end < whole:
            yield Door("Next", about.shown(full=1, **{"from": end}), stays=True)
    elif about.here:
        yield Door("Show all", about.shown(full=1), stays=True)
    elif offset is not None:
        yield Door("All in the record", about.raw(offset))


def printed(
    text: str, about: About, *, command: str = "", offset: int | None = None, tail: bool = False
) -> tuple[Html, Window, int]:
    """Return what a program printed, behind its command; also how many lines it printed over."""
    shown = window(text.strip("\n"), about, offset=offset, tail=tail)
    made = screen(shown.text)
    head = _ran(window(command, about, offset=offset)) if command else ""
    return Html(f'<pre class="out">{head}{made.html}</pre>'), shown, made.rewritten


def _ran(command: Window) -> str:
    more = f'<span class="dim">… {escaped(command.said)}</span>\n' if command.said else ""
    return f'<span class="cmd">{screen(command.text).html}</span>\n{more}'


def coloured(shown: Window, language: str, start: int | None = 1) -> Html:
    """Return a stretch of code; with numbers, unless there is no line to start from."""
    return code_block(
        shown.text, language, start=None if start is None else start + shown.first - 1
    )


def prose(text: str, about: About, *, kind: str = "said", offset: int | None = None) -> Html:
    """Return Markdown as a page shows it: `said` is a plain text, `think` a quiet one."""
    shown = window(text.strip(), about, offset=offset, lines=_FULL_LINES)
    more = ""
    if shown.said:
        more = f'<p class="dim small">{escaped(shown.said)} {_links(shown.doors)}</p>'
    classes = "think" if kind == "think" else "said prose"
    return Html(f'<div class="{classes}">{marked(shown.text)}\n{more}</div>\n')


def clipped(text: str, most: int = _SAID) -> str:
    """Return a text that is short by nature, and its beginning where it is not.

    >>> clipped("a" * 12, 10)
    'aaaaaaaaaa… (12 letters)'
    """
    if len(text) <= most:
        return text
    return f"{text[:most]}… ({len(text):,} letters)"


def _brief(text: str) -> str:
    return escaped(text if len(text) <= _SAID else clipped(text))


# Boxes


class Frame(TypedDict, total=False):
    """What may stand around something in a box."""

    title: str
    """A name of something."""
    plain: str
    """Words of ours."""
    end: str
    tags: Sequence[str]
    sizes: tuple[int, int]
    """Lines that came and went."""
    doors: Sequence[Door]
    foot: Sequence[Fact]
    shown: Window
    """How much of it there is, and the doors to the rest."""
    kind: str


def box(body: Html, **frame: Unpack[Frame]) -> Html:
    """Return something in a frame: what it is above, what is to be known of it below."""
    shown = frame.get("shown", _WHOLE)
    classes = f"box {frame['kind']}" if "kind" in frame else "box"
    doors = _links(frame.get("doors", ()))
    head = _head(frame, doors)
    foot = _foot(frame.get("foot", ()), shown, "" if head else doors)
    return Html(f'<div class="{classes}">{head}{body}\n{foot}</div>\n')


# A box by a template took longer than what is in it, and there is one in nearly every step.


def _head(frame: Frame, doors: str) -> str:
    made = ""
    if title := frame.get("title"):
        shown = _brief(title)
        made = f'<code title="{shown}">{shown}</code>'
    if plain := frame.get("plain"):
        made += f'<span class="about">{_brief(plain)}</span>'
    if sizes := frame.get("sizes"):
        made += _sizes(*sizes)
    for tag in frame.get("tags", ()):
        made += f'<span class="tag">{_brief(tag)}</span>'
    end = frame.get("end")
    if not made and not end:
        return ""
    if end:
        made += f'<span class="end"><span>{_brief(end)}</span>{doors}</span>'
    elif doors:
        made += f'<span class="end">{doors}</span>'
    return f'<header class="filehead">{made}</header>\n'


def _sizes(added: int, removed: int) -> str:
    if not added and not removed:
        return ""
    came = f"<b>+{added:,}</b>" if added else ""
    went = f"<i>\N{MINUS SIGN}{removed:,}</i>" if removed else ""
    return f'<span class="pm">{came}{" " if came and went else ""}{went}</span>'


def _links(doors: Sequence[Door]) -> str:
    """Return links; doors that lead nowhere are left out."""
    if not doors:
        return ""
    return "".join(
        [
            f'<a class="link" href="{escaped(door.address)}"{" data-stays" if door.stays else ""}>'
            f"{escaped(door.words)}</a>"
            for door in doors
            if door.address
        ]
    )


def _foot(found: Sequence[Fact], shown: Window, doors: str) -> str:
    made = ""
    for fact in found:
        if fact.value:
            name = f"{_brief(fact.name)} " if fact.name else ""
            made += f"<span{_mood(fact)}>{name}{_brief(fact.value)}</span>"
    if shown is not _WHOLE:
        doors = _links(shown.doors) + doors
        if shown.said:
            made += f"<span>{escaped(shown.said)}</span>"
    if doors:
        made += f'<span class="end">{doors}</span>'
    return f"<footer>{made}</footer>\n" if made else ""


def _mood(fact: Fact) -> str:
    return f' class="{fact.mood}"' if fact.mood else ""


def facts(*found: Fact) -> Html:
    """Return names and values, those without a value left out."""
    rows = "".join(
        [
            f"<div><dt>{_brief(each.name)}</dt><dd{_mood(each)}>{_brief(each.value)}</dd></div>"
            for each in found
            if each.value
        ]
    )
    return Html(f'<dl class="of">{rows}</dl>\n' if rows else "")


def note(text: str, mood: str = "", icon: str = "say") -> Html:
    """Return a remark."""
    said = _brief(text)
    classes = f"note {mood}" if mood else "note"
    return Html(f'<div class="{classes}">{icon_of(icon)}<div>{said}</div></div>\n')


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], numbers: Sequence[int] = ()) -> Html:
    """Return a small table; `numbers` are the columns that are set flush right."""
    return Html(part("body-table.html.j2", head=head, rows=rows, numbers=set(numbers)))


def paths(names: Sequence[str], about: About, *, offset: int | None = None) -> tuple[Html, Window]:
    """Return names of files, one a line."""
    most = _FULL_ITEMS if about.full else _ITEMS
    shown = names if len(names) <= most + _SLACK else names[:most]
    cut = Window("")
    if len(shown) < len(names):
        doors = () if about.full else tuple(_doors(about, offset, 0, 0, 1))
        cut = Window("", said=f"{len(shown):,} of {len(names):,}", doors=doors)
    rows = "".join([f"<li>{path_html(clipped(name))}</li>" for name in shown])
    return Html(f'<ul class="names">{rows}</ul>\n'), cut


def time_of_day(when: datetime | None) -> str:
    """Return the local time of day, to the second."""
    return f"{when.astimezone():%H:%M:%S}" if when is not None else ""


def raw_doors(about: About, *offsets: int | None) -> tuple[Door, ...]:
    """Return the doors to the records themselves."""
    if not about.links.live:
        return ()
    found = [offset for offset in offsets if offset is not None]
    names = ("Raw",) if len(found) == 1 else ("Call", "Result")
    return tuple(Door(name, about.raw(at)) for name, at in zip(names, found, strict=False))


def call_doors(call: Call) -> tuple[Door, ...]:
    """Return the doors to the records of a call and of its result."""
    if not call.about.links.live:
        return ()
    step = call.step
    return raw_doors(call.about, *(each.offset for each in (step.call, step.result) if each))


def door_row(*doors: Door) -> Html:
    """Return doors in a row; those that lead nowhere are left out."""
    links = " ".join([_links([door]) for door in doors if door.address])
    return Html(f'<p class="doors">{links}</p>' if links else "")


def web_address(text: str) -> str:
    """Return an address that a link may lead to, or nothing.

    >>> web_address("https://example.org/a"), web_address("javascript:alert(1)")
    ('https://example.org/a', '')
    """
    try:
        parts = urlsplit(text.strip())
    except ValueError:
        return ""
    if len(text) > _SAID:
        return ""
    return text.strip() if parts.scheme in ("http", "https") and parts.netloc else ""
