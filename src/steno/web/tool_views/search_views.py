"""Views of searches: file names, file contents, tools, the web."""

import re
from itertools import groupby
from operator import attrgetter
from typing import Any, Final, cast

import msgspec

from steno.report import humanize as say
from steno.report.humanize import MS_PER_SECOND
from steno.sanitize.html import SafeHtml, escape_text
from steno.web.templating import path_html, render_part
from steno.web.tool_views.components import (
    Fact,
    Link,
    box,
    call_links,
    clip,
    fact_list,
    join_html,
    markdown_html,
    note_box,
    path_list,
    take_excerpt,
    terminal_output,
    web_address,
)
from steno.web.tool_views.view_context import ToolCall, as_fields, as_items, as_number, as_text, first_text

_HIT_LINE: Final = re.compile(r"(?P<path>[^:\n]{1,1000}):(?P<number>\d{1,9})[:-](?P<text>[^\n]*)")
_CONTEXT_LINE: Final = re.compile(r"(?P<path>[^\n]{1,1000}?)-(?P<number>\d{1,9})-(?P<text>[^\n]*)")
_UNNAMED_LINE: Final = re.compile(r"(?P<number>\d{1,9})[:-](?P<text>[^\n]*)")
_HITS: Final = '<div class="hits" tabindex="0" role="region" aria-label="matches">'
_NEAR_ROW: Final = ' class="near"'
_MIN_NUMBERED_SHARE: Final = 0.6
_FIRST_ERROR_STATUS: Final = 400
"""The lowest HTTP status that is an error."""
_MAX_LINES: Final = 30
_MAX_PAGES: Final = 200
_MAX_MESSAGE: Final = 2_000


class _SearchHit(msgspec.Struct, frozen=True):
    path: str
    number: str
    text: str
    is_context: bool = False


class _WebPage(msgspec.Struct, frozen=True):
    title: str
    address: str
    age: str = ""

    @property
    def link_url(self) -> str:
        """Return the URL if it is safe to link to, else an empty string."""
        return web_address(self.address)


# Files


def grep_view(call: ToolCall) -> SafeHtml:
    """Return matching lines by file, or the matching files."""
    result_fields = call.result_fields
    mode = first_text(result_fields, "mode") or first_text(call.tool_input, "output_mode")
    names = [as_text(name) for name in as_items(result_fields.get("filenames"))]
    content = as_text(result_fields.get("content"))
    if call.failed or call.step.result is None:
        return SafeHtml("")
    if mode == "files_with_matches" and names:
        return _path_list_box(call, names, _search_options(call))
    text = content or ("" if names or result_fields else call.result_text)
    if not text:
        return _path_list_box(call, names, _search_options(call)) if names else _no_matches_box(call)
    excerpt = take_excerpt(text, call.context, offset=call.step.result.offset, max_lines=_MAX_LINES)
    hits = _parse_hits(excerpt.text, as_text(call.tool_input.get("path")))
    if hits is None:
        body, excerpt, _ = terminal_output(text, call.context, offset=call.step.result.offset)
    else:
        body = _hits_html(hits)
    limit = as_number(result_fields.get("appliedLimit"))
    footer = (Fact("", f"truncated by the tool at {limit:,}" if limit else ""),)
    header_links = call_links(call)
    return box(
        body, title=_pattern(call), label=_search_options(call), links=header_links, footer=footer, excerpt=excerpt
    )


def _parse_hits(text: str, path: str) -> list[_SearchHit] | None:
    """Return the matches of a search; None if the format is unknown."""
    lines = [line for line in text.split("\n") if line != "--"]
    hits: list[_SearchHit] = []
    for line in lines:
        match = _HIT_LINE.fullmatch(line) or _CONTEXT_LINE.fullmatch(line) or _UNNAMED_LINE.fullmatch(line)
        if match is None:
            hits.append(_SearchHit(hits[-1].path if hits else path, "", line, is_context=True))
            continue
        hit_path = match.groupdict().get("path") or path
        is_context = match.re is not _HIT_LINE and not (match.re is _UNNAMED_LINE and ":" in line[:12])
        hits.append(_SearchHit(hit_path, match["number"], match["text"], is_context))
    numbered_count = sum(bool(hit.number) for hit in hits)
    return hits if hits and numbered_count >= _MIN_NUMBERED_SHARE * len(hits) else None


def _hits_html(hits: list[_SearchHit]) -> SafeHtml:
    sections: list[str] = []
    for path, same in groupby(hits, key=attrgetter("path")):
        named = f"<h4>{path_html(path)}</h4>" if path else ""
        rows = "".join(
            [
                f'<tr{_NEAR_ROW if hit.is_context else ""}><td class="no">{hit.number}</td>'
                f"<td>{escape_text(hit.text) or ' '}</td></tr>"
                for hit in same
            ]
        )
        sections.append(f"<section>{named}<table><tbody>{rows}</tbody></table></section>")
    return SafeHtml(f"{_HITS}{''.join(sections)}</div>\n")


def _pattern(call: ToolCall) -> str:
    return first_text(call.tool_input, "pattern", "query")


def _search_options(call: ToolCall) -> str:
    """Return the options of a search as text."""
    tool_input = call.tool_input
    path = as_text(tool_input.get("path"))
    kinds = [as_text(tool_input.get(name)) for name in ("glob", "type")]
    flags = ["case-insensitive" if tool_input.get("-i") is True else ""]
    flags.append("multiline" if tool_input.get("multiline") is True else "")
    where = f"in {path}" if path else ""
    return ", ".join(option for option in (where, *kinds, *flags) if option)


def _path_list_box(call: ToolCall, names: list[str], label: str, note_text: str = "", noun: str = "file") -> SafeHtml:
    offset = call.step.result.offset if call.step.result is not None else None
    body, excerpt = path_list(names, call.context, offset=offset)
    header_links = call_links(call)
    end = say.count(len(names), noun)
    return box(
        body,
        title=_pattern(call) or as_text(call.tool_input.get("path")),
        label=label,
        end=end,
        links=header_links,
        footer=(Fact("", note_text),),
        excerpt=excerpt,
    )


def _no_matches_box(call: ToolCall) -> SafeHtml:
    header_links = call_links(call)
    message = note_box(call.result_text.strip()[:_MAX_MESSAGE] or "No matches", icon="search")
    return box(message, title=_pattern(call), label=_search_options(call), links=header_links)


def glob_view(call: ToolCall) -> SafeHtml:
    """Return the files that match a pattern."""
    result_fields = call.result_fields
    names = [as_text(name) for name in as_items(result_fields.get("filenames"))]
    if not names and not result_fields and not call.failed:
        lines = call.result_text.strip().split("\n")
        names = [line for line in lines if line and not line.startswith("(")]
        if len(names) == 1 and " " in names[0]:
            names = []
    if not names:
        return _no_matches_box(call) if "filenames" in result_fields else SafeHtml("")
    total = as_number(result_fields.get("totalMatches"))
    is_truncated = result_fields.get("truncated") is True
    of = f" of {total:,}" if total is not None and total > len(names) else ""
    note_text = f"truncated by the tool at {len(names):,}{of}" if is_truncated else ""
    return _path_list_box(call, names, _search_options(call), note_text)


def directory_view(call: ToolCall) -> SafeHtml:
    """Return the contents of a directory."""
    if call.failed or call.step.result is None or not call.result_text.strip():
        return SafeHtml("")
    body, excerpt, _ = terminal_output(call.result_text, call.context, offset=call.step.result.offset)
    header_links = call_links(call)
    return box(body, title=as_text(call.tool_input.get("path")), links=header_links, excerpt=excerpt)


def tool_search_view(call: ToolCall) -> SafeHtml:
    """Return the tools that match a query."""
    names = [as_text(name) for name in as_items(call.result_fields.get("matches"))]
    if not names:
        return SafeHtml("")
    total = as_number(call.result_fields.get("total_deferred_tools"))
    return _path_list_box(call, names, f"of {say.count(total, 'tool')}" if total else "", noun="tool")


# The web


def web_fetch_view(call: ToolCall) -> SafeHtml:
    """Return the answer about a fetched page, or its content."""
    result_fields = call.result_fields
    address = first_text(result_fields, "url") or first_text(call.tool_input, "url")
    text = first_text(result_fields, "result") or call.result_text
    if call.failed or call.step.result is None:
        return SafeHtml("")
    code, size = as_number(result_fields.get("code")), as_number(result_fields.get("bytes"))
    duration_ms = as_number(result_fields.get("durationMs"))
    status = f"{code} {as_text(result_fields.get('codeText'))}".strip() if code is not None else ""
    footer = (
        Fact("", status, "bad" if code is not None and code >= _FIRST_ERROR_STATUS else ""),
        Fact("", say.size(size) if size is not None else ""),
        Fact("", say.spaced_duration(duration_ms / MS_PER_SECOND) if duration_ms is not None else ""),
    )
    body = join_html(
        fact_list(Fact("prompt", as_text(call.tool_input.get("prompt")))),
        markdown_html(text, call.context, offset=call.step.result.offset),
    )
    header_links = call_links(call)
    link_url = web_address(address)
    open_link = (Link("Open", link_url),) if link_url else ()
    return box(body, title=address, links=(*open_link, *header_links), footer=footer, kind="page-of")


def web_search_view(call: ToolCall) -> SafeHtml:
    """Return the results of a web search."""
    results = call.result_fields.get("results")
    if not isinstance(results, list) or call.step.result is None:
        return SafeHtml("")
    parts: list[SafeHtml] = []
    count = 0
    for item in cast("list[Any]", results)[:_MAX_PAGES]:
        pages = [_web_page(page_fields) for page_fields in as_items(as_fields(item).get("content"))[:_MAX_PAGES]]
        if pages:
            count += len(pages)
            parts.append(SafeHtml(render_part("body-pages.html.j2", pages=pages)))
        elif isinstance(item, str) and item.strip():
            parts.append(markdown_html(item, call.context, offset=call.step.result.offset))
    if not parts:
        return SafeHtml("")
    query = first_text(call.result_fields, "query") or first_text(call.tool_input, "query")
    return box(
        join_html(*parts),
        title=query,
        end=say.count(count, "result"),
        links=call_links(call),
        footer=_domain_facts(call),
    )


def _web_page(value: Any) -> _WebPage:
    fields = as_fields(value)
    return _WebPage(
        clip(as_text(fields.get("title"))), clip(as_text(fields.get("url"))), clip(first_text(fields, "page_age"))
    )


def _domain_facts(call: ToolCall) -> tuple[Fact, ...]:
    names = (("allowed_domains", "allowed domains"), ("blocked_domains", "blocked domains"))
    return tuple(Fact(word, ", ".join(map(as_text, as_items(call.tool_input.get(name))))) for name, word in names)
