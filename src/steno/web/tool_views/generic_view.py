"""View of any tool: arguments, result and permission, with JSON values folded."""

from collections.abc import Iterable, Iterator
from typing import Any, Final, cast

from markupsafe import Markup

from steno.format.encode import encode
from steno.format.lenient_json import decode_lenient
from steno.format.message import Document, Image, Text, ToolReference
from steno.format.records import Record
from steno.report import humanize as say
from steno.sanitize.html import SafeHtml, escape_html
from steno.web.tool_views.components import Fact, box, fact_list, join_html, note_box, record_links, terminal_output
from steno.web.tool_views.record_images import image_gallery
from steno.web.tool_views.view_context import Fields, ToolCall, ViewContext, as_fields, as_items, as_text

_MAX_INLINE_TEXT: Final = 160
"""Maximum characters of a text shown inline."""
_MAX_TEXT: Final = 20_000
"""Maximum characters of an expanded text."""
_MAX_CHARACTERS: Final = 200_000
"""Maximum characters of all expanded texts."""
_MAX_ONE_LINE: Final = 60
"""Maximum characters of a container shown on one line."""
_MAX_UNFOLDED: Final = 12
"""Maximum entries of a nested container that is expanded initially."""
_MAX_ENTRIES: Final = 200
"""Maximum entries shown per container."""
_MAX_DEPTH: Final = 24
_MAX_LINES: Final = 3_000
"""Maximum lines of a document."""
_FULL_FACTOR: Final = 10
"""Factor applied to the limits if the full content is shown."""


def json_view(value: Any, *, full: bool = False) -> SafeHtml:
    """Return a value as formatted JSON."""
    html = _JsonWriter(_FULL_FACTOR if full else 1).render_value("", value, "", 0)
    return SafeHtml(f'<div class="tidy" tabindex="0" role="region" aria-label="JSON">{html}</div>')


class _JsonWriter:
    """Renders JSON values; the `name` and `end` arguments of its methods are HTML."""

    def __init__(self, factor: int) -> None:
        self._lines_left = _MAX_LINES * factor
        self._max_entries = _MAX_ENTRIES * factor
        self._max_text = _MAX_TEXT * factor
        self._characters_left = _MAX_CHARACTERS * factor

    def render_value(self, name: str, value: Any, end: str, depth: int) -> str:
        """Return a value after its name."""
        self._lines_left -= 1
        if isinstance(value, str) and (len(value) > _MAX_INLINE_TEXT or "\n" in value):
            return self._long_text(name, value, end)
        if isinstance(value, dict | list) and value:
            return self._container(name, cast("dict[str, Any] | list[Any]", value), end, depth)
        return _line_html(f"{name}{_scalar_html(value)}{end}")

    def _long_text(self, name: str, value: str, end: str) -> str:
        first = escape_html(value.lstrip().split("\n", 1)[0][:_MAX_ONE_LINE])
        head = f'{name}<span class="s">"{first}…"</span>{end}'
        visible_length = max(0, min(self._max_text, self._characters_left))
        self._characters_left -= min(visible_length, len(value))
        cut = len(value) - visible_length
        rest_note = _more_html(f"{cut:,} more characters; see the raw record") if cut > 0 else ""
        lines = value.count("\n") + 1
        size = say.count(lines, "line") if lines > 1 else f"{len(value):,} characters"
        return _folded_html(head, size, f'<pre class="s">{escape_html(value[:visible_length])}</pre>{rest_note}')

    def _container(self, name: str, value: dict[str, Any] | list[Any], end: str, depth: int) -> str:
        flat = _one_line(value)
        if flat is not None:
            return _line_html(f"{name}{flat}{end}")
        opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
        if depth >= _MAX_DEPTH or self._lines_left <= 0:
            size = say.count(len(value), "entry", "entries")
            return _line_html(f"{name}{opening}… {size} …{closing}{end}")
        entries_html = "".join(self._entries_html(value, depth + 1))
        body = f'<div class="in">{entries_html}</div>{_line_html(f"{closing}{end}")}'
        noun = ("field", "fields") if isinstance(value, dict) else ("item", "items")
        head = f"{name}{opening}"
        if depth and (len(value) > _MAX_UNFOLDED or depth > _MAX_UNFOLDED):
            return _folded_html(head, say.count(len(value), *noun), body)
        return f"{_line_html(head)}{body}"

    def _entries_html(self, value: dict[str, Any] | list[Any], depth: int) -> Iterator[str]:
        last = len(value) - 1
        for position, (name, item) in enumerate(_named_entries(value)):
            if position == self._max_entries or self._lines_left <= 0:
                yield _more_html(f"{len(value) - position:,} more")
                return
            yield self.render_value(name, item, "" if position == last else ",", depth)


def _named_entries(value: dict[str, Any] | list[Any]) -> Iterable[tuple[str, Any]]:
    if isinstance(value, list):
        return (("", item) for item in value)
    return ((f'<span class="nf">"{escape_html(name)}"</span>: ', item) for name, item in value.items())


def _one_line(value: dict[str, Any] | list[Any]) -> str | None:
    """Return a small container on one line, else None."""
    items: list[Any] = [*as_fields(value).values(), *as_items(value)]
    if len(items) > _MAX_UNFOLDED or any(as_fields(item) or as_items(item) for item in items):
        return None
    parts = [
        f"{name}{_scalar_html(item)}"
        for name, item in _named_entries(value)
        if not (isinstance(item, str) and len(item) > _MAX_ONE_LINE)
    ]
    if len(parts) < len(items) or sum(len(Markup(part).striptags()) for part in parts) > _MAX_ONE_LINE:
        return None
    opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
    return f"{opening}{', '.join(parts)}{closing}"


def _scalar_html(value: Any) -> str:
    if isinstance(value, str):
        return f'<span class="s">{escape_html(_json_text(value))}</span>'
    if isinstance(value, dict | list):
        return "{}" if isinstance(value, dict) else "[]"
    kind = "k" if value is None or isinstance(value, bool) else "m"
    return f'<span class="{kind}">{escape_html(_json_text(value))}</span>'


def _json_text(value: Any) -> str:
    return encode(value).decode("utf-8", "replace")


def _line_html(html: str) -> str:
    return f'<div class="l">{html}</div>'


def _more_html(message: str) -> str:
    return f'<div class="l dim">… {message}</div>'


def _folded_html(head: str, size: str, body: str) -> str:
    return f'<details><summary>{head} <span class="dim">{size}</span></summary>{body}</details>'


_MAX_SHORT_TEXT: Final = 160
_MAX_BLOCKS: Final = 8
_BRACKETS: Final = ("{", "[")
_MAX_JSON: Final = 400_000
_DENIAL_FIELD: Final = "toolDenialKind"
_EMPTY_VALUES: Final[tuple[Any, ...]] = (None, "", [], {})
_ALLOWING_DECISIONS: Final = ("accept", "allow")


def generic_tool_view(call: ToolCall) -> SafeHtml:
    """Return the arguments and the result of a tool call."""
    return join_html(arguments_view(call), result_view(call))


def arguments_view(call: ToolCall, *, title: str = "") -> SafeHtml:
    """Return the arguments of a tool call as JSON."""
    if call.step.call is None:
        return SafeHtml("")
    tool_input = call.tool_input if call.invalid_input is None else call.invalid_input
    header_links = record_links(call.context, call.step.call.offset)
    if not tool_input:
        return box(SafeHtml(""), title=title or call.tool, label="no arguments", links=header_links)
    json_html = json_view(tool_input, full=call.context.full)
    return box(json_html, title=title or call.tool, label="arguments", links=header_links)


def result_view(call: ToolCall, *, label: str = "result") -> SafeHtml:
    """Return the result of a tool call: text, structured data, images and documents."""
    node = call.step.result
    if node is None:
        return note_box("No result", icon="clock") if call.step.state == "open" else SafeHtml("")
    header_links = record_links(call.context, node.offset)
    parts: list[SafeHtml] = []
    structure = structured_result(call)
    if structure is not None:
        body = json_view(structure, full=call.context.full)
        parts.append(box(body, label="structured result", links=header_links))
    elif call.result_text.strip():
        body, excerpt, _ = terminal_output(call.result_text, call.context, offset=node.offset, from_end=call.failed)
        footer = (Fact("", "failed", "bad"),) if call.failed else ()
        parts.append(box(body, label=label, links=header_links, excerpt=excerpt, footer=footer))
    parts += [other_blocks_html(call), result_images(call), document_facts(call)]
    if not any(parts):
        result_data = call.result_data
        body = json_view(result_data, full=call.context.full) if result_data not in (None, "", {}, []) else SafeHtml("")
        box_label = label if body else "Empty result"
        parts.append(box(body, label=box_label, links=header_links))
    return join_html(*parts)


def structured_result(call: ToolCall) -> Any:
    """Return the structured result, if it holds more than the result text."""
    result_data = call.result_data
    if isinstance(result_data, dict) and result_data and not call.failed:
        return as_fields(result_data)
    text = call.result_text.strip()
    if text.startswith(_BRACKETS) and len(text) < _MAX_JSON:
        value = decode_lenient(text.encode("utf-8", "replace"))
        if isinstance(value, dict | list) and value:
            return as_fields(value) or as_items(value)
    return None


def other_blocks_html(call: ToolCall) -> SafeHtml:
    """Return the result blocks other than text and images."""
    known_types = (Text, Image, Document, ToolReference)
    other_blocks = [block for block in call.result_blocks if not isinstance(block, known_types)]
    names = [block.tool_name for block in call.result_blocks if isinstance(block, ToolReference)]
    parts = [fact_list(Fact("tools", ", ".join(names)))] if names else []
    for block in other_blocks[:_MAX_BLOCKS]:
        value: Any = getattr(block, "fields", None) or {"type": block.type}
        parts.append(box(json_view(value, full=call.context.full), title=block.type or "block"))
    return join_html(*parts)


def result_images(call: ToolCall) -> SafeHtml:
    """Return the images in a result."""
    return image_gallery(call.record, call.context) if call.record is not None else SafeHtml("")


def document_facts(call: ToolCall) -> SafeHtml:
    """Return the titles or sizes of the documents in a result."""
    document_blocks = [block for block in call.result_blocks if isinstance(block, Document)]
    if not document_blocks:
        return SafeHtml("")
    rows = [
        Fact(block.media_type or "document", block.title or say.size(len(as_text(block.source.get("data"))) * 3 // 4))
        for block in document_blocks[:_MAX_BLOCKS]
    ]
    return fact_list(*rows)


def refusal_note(call: ToolCall) -> SafeHtml:
    """Return the reason why a tool call was denied or interrupted."""
    if call.record is None:
        return SafeHtml("")
    kind = as_text(call.record.fields.get(_DENIAL_FIELD))
    why = as_text(call.result_data) or call.result_text
    label = "Denied" if call.step.state == "denied" else "Interrupted"
    message = f"{label} ({kind})" if kind else label
    return note_box(f"{message}: {why.strip()[:2000]}" if why.strip() else f"{message}.", "warn", "stop")


def permission_facts(call: ToolCall, record: Record) -> SafeHtml:
    """Return the recorded permission decision of a tool call."""
    fields = as_fields(record.fields.get("permissionDecision"))
    names = ("reasonType", "source", "ruleSource", "mode", "reason")
    why = [as_text(fields.get(name)) for name in names]
    decision = as_text(fields.get("decision"))
    if fields.get("source") == "config" and decision in _ALLOWING_DECISIONS and not call.context.full:
        # Most calls are allowed by a rule of the configuration.
        return SafeHtml("")
    text = ", ".join(item for item in (decision, *why) if item)
    css_class = "" if decision in _ALLOWING_DECISIONS else "bad"
    return fact_list(Fact("permission", text, css_class))


def object_view(fields: Fields, context: ViewContext, *, offset: int, skipped: frozenset[str]) -> SafeHtml:
    """Return an object: short values as facts, long texts in boxes, other values as JSON."""
    short_facts: list[Fact] = []
    boxes: list[SafeHtml] = []
    other_fields: Fields = {}
    for name, value in fields.items():
        if name in skipped or value in _EMPTY_VALUES:
            continue
        text = _short_text(value)
        inner = [(inner_name, _short_text(item)) for inner_name, item in as_fields(value).items()]
        if text:
            short_facts.append(Fact(_field_label(name), text))
        elif inner and all(inner_text or item in _EMPTY_VALUES for inner_text, item in _inner_values(inner, value)):
            short_facts += [Fact(_field_label(each), said) for each, said in inner]
        elif isinstance(value, str):
            body, excerpt, _ = terminal_output(value, context, offset=offset)
            boxes.append(box(body, label=_field_label(name), excerpt=excerpt))
        else:
            other_fields[name] = value
    if other_fields:
        boxes.append(box(json_view(other_fields, full=context.full)))
    return join_html(fact_list(*short_facts), *boxes)


def _inner_values(inner: list[tuple[str, str]], value: Any) -> list[tuple[str, Any]]:
    return [(inner_text, as_fields(value)[name]) for name, inner_text in inner]


def _short_text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = as_text(value)
    if text and len(text) <= _MAX_SHORT_TEXT and "\n" not in text:
        return text
    items = as_items(value)
    if items and len(items) <= _MAX_BLOCKS and all(isinstance(item, str) for item in items):
        line = ", ".join(items)
        return line if len(line) <= _MAX_SHORT_TEXT and "\n" not in line else ""
    return ""


def _field_label(name: str) -> str:
    """Return a field name as words.

    >>> _field_label("planFilePath"), _field_label("delivery_id"), _field_label("URL")
    ('plan file path', 'delivery id', 'url')
    """
    spaced = "".join(
        f" {letter}" if letter.isupper() and position and name[position - 1].islower() else letter
        for position, letter in enumerate(name)
    )
    return spaced.replace("_", " ").lower()
