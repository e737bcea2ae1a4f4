"""What every tool has: arguments and a result. Shown so where nothing better is known of a tool."""

from typing import Any, Final

from steno.format.blocks import Document, Image, Text, ToolReference
from steno.format.loose import loose
from steno.format.records import Record
from steno.report import words as say
from steno.safe.html import Html
from steno.web.bodies.about import About, Call
from steno.web.bodies.parts import (
    Fact,
    box,
    facts,
    joined,
    note,
    printed,
    raw_doors,
)
from steno.web.bodies.pictures import gallery
from steno.web.bodies.tidy import tidy
from steno.web.bodies.values import Fields, as_fields, as_items, as_text

__all__ = [
    "arguments",
    "described",
    "documents",
    "permission",
    "pictures",
    "plain_tool",
    "refusal",
    "result",
]

_SHORT: Final = 160
_ENOUGH: Final = 8
_BRACKETS: Final = ("{", "[")
_JSON: Final = 400_000
_REASON: Final = "toolDenialKind"
_NONE: Final[tuple[Any, ...]] = (None, "", [], {})
_YES: Final = ("accept", "allow")


def plain_tool(call: Call) -> Html:
    """Return the arguments and the result of a call."""
    return joined(arguments(call), result(call))


def arguments(call: Call, *, title: str = "") -> Html:
    """Return what a call was asked, as tidy JSON."""
    if call.step.call is None:
        return Html("")
    asked = call.asked if call.odd is None else call.odd
    doors = raw_doors(call.about, call.step.call.offset)
    if not asked:
        return box(Html(""), title=title or call.tool, plain="no arguments", doors=doors)
    shown = tidy(asked, full=call.about.full)
    return box(shown, title=title or call.tool, plain="arguments", doors=doors)


def result(call: Call, *, plain: str = "result") -> Html:
    """Return what came of a call: words, structure, pictures, documents."""
    node = call.step.result
    if node is None:
        return note("There is no result.", icon="clock") if call.step.state == "open" else Html("")
    doors = raw_doors(call.about, node.offset)
    made: list[Html] = []
    structure = structured(call)
    if structure is not None:
        body = tidy(structure, full=call.about.full)
        made.append(box(body, plain="structured result", doors=doors))
    elif call.text.strip():
        body, shown, _ = printed(call.text, call.about, offset=node.offset, tail=call.failed)
        mood = (Fact("", "failed", "bad"),) if call.failed else ()
        made.append(box(body, plain=plain, doors=doors, shown=shown, foot=mood))
    made += [others(call), pictures(call), documents(call)]
    if not any(made):
        kept = call.kept
        body = tidy(kept, full=call.about.full) if kept not in (None, "", {}, []) else Html("")
        said = plain if body else "The result is empty."
        made.append(box(body, plain=said, doors=doors))
    return joined(*made)


def structured(call: Call) -> Any:
    """Return the result as a value, where it is more than a text."""
    kept = call.kept
    if isinstance(kept, dict) and kept and not call.failed:
        return as_fields(kept)
    text = call.text.strip()
    if text.startswith(_BRACKETS) and len(text) < _JSON:
        value = loose(text.encode("utf-8", "replace"))
        if isinstance(value, dict | list) and value:
            return as_fields(value) or as_items(value)
    return None


def others(call: Call) -> Html:
    """Return the blocks of a result that are neither words nor pictures."""
    known = (Text, Image, Document, ToolReference)
    odd = [block for block in call.blocks if not isinstance(block, known)]
    names = [block.tool_name for block in call.blocks if isinstance(block, ToolReference)]
    made = [facts(Fact("tools", ", ".join(names)))] if names else []
    for block in odd[:_ENOUGH]:
        value: Any = getattr(block, "fields", None) or {"type": block.type}
        made.append(box(tidy(value, full=call.about.full), title=block.type or "block"))
    return joined(*made)


def pictures(call: Call) -> Html:
    """Return the pictures in a result."""
    return gallery(call.record, call.about) if call.record is not None else Html("")


def documents(call: Call) -> Html:
    """Name the documents in a result."""
    found = [block for block in call.blocks if isinstance(block, Document)]
    if not found:
        return Html("")
    rows = [
        Fact(
            block.media_type or "document",
            block.title or say.size(len(as_text(block.source.get("data"))) * 3 // 4),
        )
        for block in found[:_ENOUGH]
    ]
    return facts(*rows)


def refusal(call: Call) -> Html:
    """Return why a call was not carried out."""
    if call.record is None:
        return Html("")
    kind = as_text(call.record.fields.get(_REASON))
    why = as_text(call.kept) or call.text
    words = "Not allowed" if call.step.state == "denied" else "Interrupted"
    said = f"{words} ({kind})" if kind else words
    return note(f"{said}: {why.strip()[:2000]}" if why.strip() else f"{said}.", "warn", "stop")


def permission(call: Call, record: Record) -> Html:
    """Return who let a call be carried out, where the client kept it."""
    fields = as_fields(record.fields.get("permissionDecision"))
    names = ("reasonType", "source", "ruleSource", "mode", "reason")
    why = [as_text(fields.get(name)) for name in names]
    decision = as_text(fields.get("decision"))
    if fields.get("source") == "config" and decision in _YES and not call.about.full:
        # A rule that allows is the ordinary case.
        return Html("")
    said = ", ".join(word for word in (decision, *why) if word)
    mood = "" if decision in _YES else "bad"
    return facts(Fact("permission", said, mood))


def described(fields: Fields, about: About, *, offset: int, leave: frozenset[str]) -> Html:
    """Return any object: short values as facts, long texts in boxes, the rest as tidy JSON."""
    short: list[Fact] = []
    made: list[Html] = []
    rest: Fields = {}
    for name, value in fields.items():
        if name in leave or value in _NONE:
            continue
        text = _short(value)
        inner = [(each, _short(item)) for each, item in as_fields(value).items()]
        if text:
            short.append(Fact(_plainly(name), text))
        elif inner and all(said or item in _NONE for said, item in _beside(inner, value)):
            short += [Fact(_plainly(each), said) for each, said in inner]
        elif isinstance(value, str):
            body, shown, _ = printed(value, about, offset=offset)
            made.append(box(body, plain=_plainly(name), shown=shown))
        else:
            rest[name] = value
    if rest:
        made.append(box(tidy(rest, full=about.full)))
    return joined(facts(*short), *made)


def _beside(inner: list[tuple[str, str]], value: Any) -> list[tuple[str, Any]]:
    return [(said, as_fields(value)[name]) for name, said in inner]


def _short(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = as_text(value)
    if text and len(text) <= _SHORT and "\n" not in text:
        return text
    items = as_items(value)
    if items and len(items) <= _ENOUGH and all(isinstance(item, str) for item in items):
        line = ", ".join(items)
        return line if len(line) <= _SHORT and "\n" not in line else ""
    return ""


def _plainly(name: str) -> str:
    """Return the name of a field in plain words.

    >>> _plainly("planFilePath"), _plainly("delivery_id"), _plainly("URL")
    ('plan file path', 'delivery id', 'url')
    """
    spaced = "".join(
        f" {letter}" if letter.isupper() and at and name[at - 1].islower() else letter
        for at, letter in enumerate(name)
    )
    return spaced.replace("_", " ").lower()
