"""Searching: files, lines in files, tools, pages of the web."""

import re
from itertools import groupby
from operator import attrgetter
from typing import Any, Final, cast

import msgspec

from steno.report import words as say
from steno.safe.html import Html, escaped_text
from steno.web.bodies.about import Call
from steno.web.bodies.parts import (
    Door,
    Fact,
    box,
    call_doors,
    clipped,
    facts,
    joined,
    note,
    paths,
    printed,
    prose,
    web_address,
    window,
)
from steno.web.bodies.values import as_fields, as_items, as_number, as_text, first_text
from steno.web.paint import duration, part
from steno.web.render.pieces import path_html

__all__ = ["fetched", "globbed", "grepped", "listed", "searched", "tools_found"]

_HIT: Final = re.compile(r"(?P<path>[^:\n]{1,1000}):(?P<number>\d{1,9})[:-](?P<text>[^\n]*)")
_NEAR: Final = re.compile(r"(?P<path>[^\n]{1,1000}?)-(?P<number>\d{1,9})-(?P<text>[^\n]*)")
_BARE: Final = re.compile(r"(?P<number>\d{1,9})[:-](?P<text>[^\n]*)")
_HITS: Final = '<div class="hits" tabindex="0" role="region" aria-label="matches">'
_NEAR_ROW: Final = ' class="near"'
_MOSTLY: Final = 0.6
_THOUSAND: Final = 1000
_REFUSED: Final = 400
"""From here on a page says that it was not given."""
_LINES: Final = 30
_PAGES: Final = 200
_SAID: Final = 2_000


class _Hit(msgspec.Struct, frozen=True):
    path: str
    number: str
    text: str
    near: bool = False


class _Page(msgspec.Struct, frozen=True):
    title: str
    address: str
    said: str = ""

    @property
    def leads(self) -> str:
        """Where a link may lead, or nothing."""
        return web_address(self.address)


# Files


def grepped(call: Call) -> Html:
    """Return lines that fit, by file, or the files alone."""
    kept = call.fields
    mode = first_text(kept, "mode") or first_text(call.asked, "output_mode")
    names = [as_text(name) for name in as_items(kept.get("filenames"))]
    content = as_text(kept.get("content"))
    if call.failed or call.step.result is None:
        return Html("")
    if mode == "files_with_matches" and names:
        return _names(call, names, _asked(call))
    text = content or ("" if names or kept else call.text)
    if not text:
        return _names(call, names, _asked(call)) if names else _nothing(call)
    shown = window(text, call.about, offset=call.step.result.offset, lines=_LINES)
    hits = _hits(shown.text, as_text(call.asked.get("path")))
    if hits is None:
        body, shown, _ = printed(text, call.about, offset=call.step.result.offset)
    else:
        body = _hits_html(hits)
    limit = as_number(kept.get("appliedLimit"))
    foot = (Fact("", f"cut by the tool at {limit:,}" if limit else ""),)
    doors = call_doors(call)
    return box(body, title=_pattern(call), plain=_asked(call), doors=doors, foot=foot, shown=shown)


def _hits(text: str, path: str) -> list[_Hit] | None:
    """Return the lines that were found, if that is how they are written."""
    lines = [line for line in text.split("\n") if line != "--"]
    hits: list[_Hit] = []
    for line in lines:
        found = _HIT.fullmatch(line) or _NEAR.fullmatch(line) or _BARE.fullmatch(line)
        if found is None:
            hits.append(_Hit(hits[-1].path if hits else path, "", line, near=True))
            continue
        own = found.groupdict().get("path") or path
        near = found.re is not _HIT and not (found.re is _BARE and ":" in line[:12])
        hits.append(_Hit(own, found["number"], found["text"], near))
    told = sum(bool(hit.number) for hit in hits)
    return hits if hits and told >= _MOSTLY * len(hits) else None


def _hits_html(hits: list[_Hit]) -> Html:
    made: list[str] = []
    for path, same in groupby(hits, key=attrgetter("path")):
        named = f"<h4>{path_html(path)}</h4>" if path else ""
        rows = "".join(
            [
                f'<tr{_NEAR_ROW if hit.near else ""}><td class="no">{hit.number}</td>'
                f"<td>{escaped_text(hit.text) or ' '}</td></tr>"
                for hit in same
            ]
        )
        made.append(f"<section>{named}<table><tbody>{rows}</tbody></table></section>")
    return Html(f"{_HITS}{''.join(made)}</div>\n")


def _pattern(call: Call) -> str:
    return first_text(call.asked, "pattern", "query")


def _asked(call: Call) -> str:
    """Return how a search was narrowed, in words."""
    asked = call.asked
    path = as_text(asked.get("path"))
    kinds = [as_text(asked.get(name)) for name in ("glob", "type")]
    flags = ["any case" if asked.get("-i") is True else ""]
    flags.append("across lines" if asked.get("multiline") is True else "")
    where = f"in {path}" if path else ""
    return ", ".join(word for word in (where, *kinds, *flags) if word)


def _names(call: Call, names: list[str], said: str, foot: str = "", noun: str = "file") -> Html:
    offset = call.step.result.offset if call.step.result is not None else None
    body, shown = paths(names, call.about, offset=offset)
    doors = call_doors(call)
    end = say.count(len(names), noun)
    return box(
        body,
        title=_pattern(call) or as_text(call.asked.get("path")),
        plain=said,
        end=end,
        doors=doors,
        foot=(Fact("", foot),),
        shown=shown,
    )


def _nothing(call: Call) -> Html:
    doors = call_doors(call)
    said = note(call.text.strip()[:_SAID] or "Nothing was found.", icon="search")
    return box(said, title=_pattern(call), plain=_asked(call), doors=doors)


def globbed(call: Call) -> Html:
    """Return the files that were found by name."""
    kept = call.fields
    names = [as_text(name) for name in as_items(kept.get("filenames"))]
    if not names and not kept and not call.failed:
        lines = call.text.strip().split("\n")
        names = [line for line in lines if line and not line.startswith("(")]
        if len(names) == 1 and " " in names[0]:
            names = []
    if not names:
        return _nothing(call) if "filenames" in kept else Html("")
    total = as_number(kept.get("totalMatches"))
    cut = kept.get("truncated") is True
    of = f" of {total:,}" if total is not None and total > len(names) else ""
    foot = f"cut by the tool at {len(names):,}{of}" if cut else ""
    return _names(call, names, _asked(call), foot)


def listed(call: Call) -> Html:
    """Return the contents of a folder."""
    if call.failed or call.step.result is None or not call.text.strip():
        return Html("")
    body, shown, _ = printed(call.text, call.about, offset=call.step.result.offset)
    doors = call_doors(call)
    return box(body, title=as_text(call.asked.get("path")), doors=doors, shown=shown)


def tools_found(call: Call) -> Html:
    """Return the tools that a search for tools found."""
    names = [as_text(name) for name in as_items(call.fields.get("matches"))]
    if not names:
        return Html("")
    total = as_number(call.fields.get("total_deferred_tools"))
    return _names(call, names, f"of {say.count(total, 'tool')}" if total else "", noun="tool")


# The web


def fetched(call: Call) -> Html:
    """Return a page that was fetched, or what was made of it."""
    kept = call.fields
    address = first_text(kept, "url") or first_text(call.asked, "url")
    text = first_text(kept, "result") or call.text
    if call.failed or call.step.result is None:
        return Html("")
    code, size = as_number(kept.get("code")), as_number(kept.get("bytes"))
    took = as_number(kept.get("durationMs"))
    status = f"{code} {as_text(kept.get('codeText'))}".strip() if code is not None else ""
    foot = (
        Fact("", status, "bad" if code is not None and code >= _REFUSED else ""),
        Fact("", say.size(size) if size is not None else ""),
        Fact("", duration(took / _THOUSAND) if took is not None else ""),
    )
    body = joined(
        facts(Fact("asked", as_text(call.asked.get("prompt")))),
        prose(text, call.about, offset=call.step.result.offset),
    )
    doors = call_doors(call)
    leads = web_address(address)
    out = (Door("Open", leads),) if leads else ()
    return box(body, title=address, doors=(*out, *doors), foot=foot, kind="page-of")


def searched(call: Call) -> Html:
    """Return what a search in the web found."""
    results = call.fields.get("results")
    if not isinstance(results, list) or call.step.result is None:
        return Html("")
    made: list[Html] = []
    count = 0
    for item in cast("list[Any]", results)[:_PAGES]:
        pages = [_page(each) for each in as_items(as_fields(item).get("content"))[:_PAGES]]
        if pages:
            count += len(pages)
            made.append(Html(part("body-pages.html.j2", pages=pages)))
        elif isinstance(item, str) and item.strip():
            made.append(prose(item, call.about, offset=call.step.result.offset))
    if not made:
        return Html("")
    query = first_text(call.fields, "query") or first_text(call.asked, "query")
    return box(
        joined(*made),
        title=query,
        end=say.count(count, "result"),
        doors=call_doors(call),
        foot=_domains(call),
    )


def _page(value: Any) -> _Page:
    fields = as_fields(value)
    return _Page(
        clipped(as_text(fields.get("title"))),
        clipped(as_text(fields.get("url"))),
        clipped(first_text(fields, "page_age")),
    )


def _domains(call: Call) -> tuple[Fact, ...]:
    names = (("allowed_domains", "only"), ("blocked_domains", "without"))
    return tuple(
        Fact(word, ", ".join(map(as_text, as_items(call.asked.get(name))))) for name, word in names
    )
