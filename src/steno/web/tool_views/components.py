"""HTML components of views: boxes, facts, tables, links, excerpts of long texts."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypedDict, Unpack
from urllib.parse import urlsplit

import msgspec

from steno.report import humanize as say
from steno.report.humanize import MINUS_SIGN
from steno.sanitize.html import SafeHtml, escape_html
from steno.web.render.ansi import render_screen
from steno.web.render.code import code_block
from steno.web.render.markdown import markdown_to_html
from steno.web.templating import icon_html, path_html, render_part
from steno.web.tool_views.view_context import ToolCall, ViewContext

_MAX_LINES: Final = 30
_MAX_CHARACTERS: Final = 12_000
_MAX_FULL_LINES: Final = 2_000
_MAX_FULL_CHARACTERS: Final = 400_000
_SLACK_LINES: Final = 4
"""Number of lines above the limit that are still shown instead of cut."""
_MAX_SHORT_TEXT: Final = 3_000
"""Maximum characters of names, titles and notes."""
_MAX_ITEMS: Final = 60
_MAX_FULL_ITEMS: Final = 5_000


class Link(msgspec.Struct, frozen=True):
    """A link to another page or to another view of the same item."""

    label: str
    url: str
    same_item: bool = False
    """Whether the URL shows the same item; a script may then load it in place."""


class Fact(msgspec.Struct, frozen=True):
    """A labelled value."""

    name: str
    value: str
    css_class: str = ""
    """`bad`, `warn`, `ok` or empty."""


class Excerpt(msgspec.Struct, frozen=True):
    """Part of a text, with a label of its extent and links to the rest."""

    text: str
    first_line: int = 1
    """Number of the first line of the excerpt."""
    extent_label: str = ""
    """Extent of the excerpt, such as "120 of 400 lines"; empty if complete."""
    links: tuple[Link, ...] = ()


_NO_EXCERPT: Final = Excerpt("")


def join_html(*html_parts: SafeHtml) -> SafeHtml:
    """Concatenate HTML parts."""
    return SafeHtml("".join(html_parts))


# Texts


def take_excerpt(
    text: str, context: ViewContext, *, offset: int | None = None, from_end: bool = False, max_lines: int = _MAX_LINES
) -> Excerpt:
    """Return an excerpt of a text and links to the rest.

    `offset` is the offset of the record with the text, used if the context has no URL. With `from_end`, return the end
    of the text instead of the beginning.
    """
    line_limit, character_limit = (
        (_MAX_FULL_LINES, _MAX_FULL_CHARACTERS) if context.full else (max_lines, _MAX_CHARACTERS)
    )
    start = min(context.start, max(0, len(text) - 1)) if context.full and context.start > 0 else 0
    uncut_limit = line_limit + _SLACK_LINES
    # A text has fewer lines than characters.
    if not start and (len(text) < uncut_limit or (len(text) <= character_limit and text.count("\n") < uncut_limit)):
        return Excerpt(text)
    if from_end and not context.full:
        start = _start_of_last_lines(text, line_limit, character_limit)
        end = len(text)
    else:
        end = _end_after_lines(text, start, line_limit, character_limit)
    first = text.count("\n", 0, start) + 1
    visible = text[start:end].removesuffix("\n")
    extent_label = _extent_label(text, first, first + visible.count("\n"), (start, end))
    return Excerpt(visible, first, extent_label, tuple(_rest_links(context, offset, start, end, len(text))))


def _end_after_lines(text: str, start: int, lines: int, characters: int) -> int:
    """Return the end offset after `lines` lines. Split a line only if it exceeds the character limit."""
    end = start
    for _ in range(lines):
        newline = text.find("\n", end, start + characters)
        if newline < 0:
            rest = min(len(text), start + characters)
            return rest if end == start or rest == len(text) else end
        end = newline + 1
    return end


def _start_of_last_lines(text: str, lines: int, characters: int) -> int:
    start = len(text.rstrip("\n"))
    low = max(0, start - characters)
    for _ in range(lines):
        newline = text.rfind("\n", low, start)
        if newline < 0:
            return low
        start = newline
    return start + 1


def _extent_label(text: str, first: int, last: int, stretch: tuple[int, int]) -> str:
    start, end = stretch
    total_lines = text.rstrip("\n").count("\n") + 1
    cuts_line = (start and text[start - 1] != "\n") or (end < len(text) and text[end - 1] != "\n")
    if cuts_line:
        return f"characters {start + 1:,} to {end:,} of {len(text):,}"
    if first == 1:
        return f"{min(last, total_lines):,} of {say.count(total_lines, 'line')}"
    if end == len(text):
        return f"the last {total_lines - first + 1:,} of {say.count(total_lines, 'line')}"
    return f"lines {first:,} to {min(last, total_lines):,} of {total_lines:,}"


def _rest_links(context: ViewContext, offset: int | None, start: int, end: int, length: int) -> Iterable[Link]:
    if context.full:
        if start:
            yield Link("From the start", context.url(full=1), same_item=True)
        if end < length:
            yield Link("Next", context.url(full=1, **{"from": end}), same_item=True)
    elif context.path:
        yield Link("Show all", context.url(full=1), same_item=True)
    elif offset is not None:
        yield Link("Full record", context.record_url(offset))


def terminal_output(
    text: str, context: ViewContext, *, command: str = "", offset: int | None = None, from_end: bool = False
) -> tuple[SafeHtml, Excerpt, int]:
    """Return terminal output after its command, its excerpt, and the number of overwritten lines."""
    excerpt = take_excerpt(text.strip("\n"), context, offset=offset, from_end=from_end)
    screen_view = render_screen(excerpt.text)
    command_html = _command_html(take_excerpt(command, context, offset=offset)) if command else ""
    return (
        SafeHtml(f'<pre class="out">{command_html}{screen_view.html}</pre>'),
        excerpt,
        screen_view.overwritten_lines,
    )


def _command_html(command: Excerpt) -> str:
    cut_note = f'<span class="dim">… {escape_html(command.extent_label)}</span>\n' if command.extent_label else ""
    return f'<span class="cmd">{render_screen(command.text).html}</span>\n{cut_note}'


def code_html(excerpt: Excerpt, language: str, start: int | None = 1) -> SafeHtml:
    """Return code as HTML, numbered from `start`; without line numbers if `start` is None."""
    return code_block(excerpt.text, language, start=None if start is None else start + excerpt.first_line - 1)


def markdown_html(text: str, context: ViewContext, *, kind: str = "said", offset: int | None = None) -> SafeHtml:
    """Return Markdown as HTML; `kind` is `said` for plain text or `think` for thinking."""
    excerpt = take_excerpt(text.strip(), context, offset=offset, max_lines=_MAX_FULL_LINES)
    rest_note = ""
    if excerpt.extent_label:
        rest_note = f'<p class="dim small">{escape_html(excerpt.extent_label)} {_links_html(excerpt.links)}</p>'
    classes = "think" if kind == "think" else "said prose"
    return SafeHtml(f'<div class="{classes}">{markdown_to_html(excerpt.text)}\n{rest_note}</div>\n')


def clip(text: str, max_length: int = _MAX_SHORT_TEXT) -> str:
    """Truncate a text and append its length.

    >>> clip("a" * 12, 10)
    'aaaaaaaaaa… (12 characters)'
    """
    if len(text) <= max_length:
        return text
    return f"{text[:max_length]}… ({len(text):,} characters)"


def _clipped_html(text: str) -> str:
    return escape_html(text if len(text) <= _MAX_SHORT_TEXT else clip(text))


# Boxes


class BoxOptions(TypedDict, total=False):
    """The header, footer and style of a box."""

    title: str
    """A name or path, shown as code."""
    label: str
    """A label, shown as text."""
    end: str
    tags: Sequence[str]
    sizes: tuple[int, int]
    """Added and removed lines."""
    links: Sequence[Link]
    footer: Sequence[Fact]
    excerpt: Excerpt
    """Extent of the content and links to the rest."""
    kind: str


def box(body: SafeHtml, **frame: Unpack[BoxOptions]) -> SafeHtml:
    """Return content in a box with a header and a footer."""
    excerpt = frame.get("excerpt", _NO_EXCERPT)
    classes = f"box {frame['kind']}" if "kind" in frame else "box"
    links_html = _links_html(frame.get("links", ()))
    head = _header_html(frame, links_html)
    footer = _footer_html(frame.get("footer", ()), excerpt, "" if head else links_html)
    return SafeHtml(f'<div class="{classes}">{head}{body}\n{footer}</div>\n')


# Built without a template: nearly every step has a box, and a template took longer than its content.


def _header_html(frame: BoxOptions, links_html: str) -> str:
    html = ""
    if title := frame.get("title"):
        title_html = _clipped_html(title)
        html = f'<code title="{title_html}">{title_html}</code>'
    if label := frame.get("label"):
        html += f'<span class="about">{_clipped_html(label)}</span>'
    if sizes := frame.get("sizes"):
        html += _changes_html(*sizes)
    for tag in frame.get("tags", ()):
        html += f'<span class="tag">{_clipped_html(tag)}</span>'
    end = frame.get("end")
    if not html and not end:
        return ""
    if end:
        html += f'<span class="end"><span>{_clipped_html(end)}</span>{links_html}</span>'
    elif links_html:
        html += f'<span class="end">{links_html}</span>'
    return f'<header class="filehead">{html}</header>\n'


def _changes_html(added: int, removed: int) -> str:
    if not added and not removed:
        return ""
    added_html = f"<b>+{added:,}</b>" if added else ""
    removed_html = f"<i>{MINUS_SIGN}{removed:,}</i>" if removed else ""
    return f'<span class="pm">{added_html}{" " if added_html and removed_html else ""}{removed_html}</span>'


def _links_html(links: Sequence[Link]) -> str:
    """Return links as HTML. Skip links without a URL."""
    if not links:
        return ""
    return "".join(
        [
            f'<a class="link" href="{escape_html(link.url)}"{" data-stays" if link.same_item else ""}>'
            f"{escape_html(link.label)}</a>"
            for link in links
            if link.url
        ]
    )


def _footer_html(footer_facts: Sequence[Fact], excerpt: Excerpt, links_html: str) -> str:
    html = ""
    for fact in footer_facts:
        if fact.value:
            name = f"{_clipped_html(fact.name)} " if fact.name else ""
            html += f"<span{_class_attribute(fact)}>{name}{_clipped_html(fact.value)}</span>"
    if excerpt is not _NO_EXCERPT:
        links_html = _links_html(excerpt.links) + links_html
        if excerpt.extent_label:
            html += f"<span>{escape_html(excerpt.extent_label)}</span>"
    if links_html:
        html += f'<span class="end">{links_html}</span>'
    return f"<footer>{html}</footer>\n" if html else ""


def _class_attribute(fact: Fact) -> str:
    return f' class="{fact.css_class}"' if fact.css_class else ""


def fact_list(*entries: Fact) -> SafeHtml:
    """Return facts as a definition list. Skip facts without a value."""
    rows = "".join(
        [
            f"<div><dt>{_clipped_html(fact.name)}</dt><dd{_class_attribute(fact)}>{_clipped_html(fact.value)}</dd></div>"
            for fact in entries
            if fact.value
        ]
    )
    return SafeHtml(f'<dl class="of">{rows}</dl>\n' if rows else "")


def note_box(text: str, css_class: str = "", icon: str = "say") -> SafeHtml:
    """Return a note with an icon."""
    text_html = _clipped_html(text)
    classes = f"note {css_class}" if css_class else "note"
    return SafeHtml(f'<div class="{classes}">{icon_html(icon)}<div>{text_html}</div></div>\n')


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], numbers: Sequence[int] = ()) -> SafeHtml:
    """Return a table; `numbers` are the indexes of right-aligned columns."""
    return SafeHtml(render_part("body-table.html.j2", head=head, rows=rows, numbers=set(numbers)))


def path_list(names: Sequence[str], context: ViewContext, *, offset: int | None = None) -> tuple[SafeHtml, Excerpt]:
    """Return file names as a list, and a label of its extent."""
    max_items = _MAX_FULL_ITEMS if context.full else _MAX_ITEMS
    visible = names if len(names) <= max_items + _SLACK_LINES else names[:max_items]
    excerpt = Excerpt("")
    if len(visible) < len(names):
        header_links = () if context.full else tuple(_rest_links(context, offset, 0, 0, 1))
        excerpt = Excerpt("", extent_label=f"{len(visible):,} of {len(names):,}", links=header_links)
    rows = "".join([f"<li>{path_html(clip(name))}</li>" for name in visible])
    return SafeHtml(f'<ul class="names">{rows}</ul>\n'), excerpt


def record_links(context: ViewContext, *offsets: int | None) -> tuple[Link, ...]:
    """Return links to the records at some offsets."""
    if not context.links.live:
        return ()
    known_offsets = [offset for offset in offsets if offset is not None]
    names = ("Raw",) if len(known_offsets) == 1 else ("Call", "Result")
    return tuple(
        Link(name, context.record_url(record_offset)) for name, record_offset in zip(names, known_offsets, strict=False)
    )


def call_links(call: ToolCall) -> tuple[Link, ...]:
    """Return links to the records of a tool call and its result."""
    if not call.context.links.live:
        return ()
    step = call.step
    return record_links(call.context, *(node.offset for node in (step.call, step.result) if node))


def link_row(*row_links: Link) -> SafeHtml:
    """Return a row of links. Skip links without a URL."""
    links = " ".join([_links_html([link]) for link in row_links if link.url])
    return SafeHtml(f'<p class="doors">{links}</p>' if links else "")


def web_address(text: str) -> str:
    """Return an HTTP or HTTPS URL, else an empty string.

    >>> web_address("https://example.org/a"), web_address("javascript:alert(1)")
    ('https://example.org/a', '')
    """
    try:
        parts = urlsplit(text.strip())
    except ValueError:
        return ""
    if len(text) > _MAX_SHORT_TEXT:
        return ""
    return text.strip() if parts.scheme in ("http", "https") and parts.netloc else ""
