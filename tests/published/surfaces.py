"""What each surface of steno says of the same sessions: title, turns, steps, status."""

import html
import io
import json
import re
import sys
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from tests.published.example import Example
from tests.web.explorer import Explorer

from steno.cli.main import run
from steno.index.search.finder import group_hits
from steno.index.session_stats import FILE_ID_SHIFT
from steno.report.brief.brief_builder import SessionFile, build_briefs
from steno.report.session_list import SessionFilter, SessionRow, list_sessions
from steno.session.turns.session_facts import count_session
from steno.store.discovery import discover_file
from steno.store.session_lookup import open_file_session

ALL: Final = 10_000
_STATES: Final = {"live": "running", "waiting for input": "waiting", "done": "finished"}
"""Statuses of the session list that commands name otherwise."""
_STANDINGS: Final = {"Live, turn": "running", "Live, waiting": "waiting", "Done": "finished"}
"""Beginnings of the status on a session page, likewise."""


class Said(NamedTuple):
    """What a surface says of a session; None where it says nothing of the kind."""

    title: str
    turns: int | None = None
    steps: int | None = None
    status: str | None = None


def place(root: Path, examples: dict[str, Example]) -> dict[str, Path]:
    """Write sessions below a root, where their documents say; return their paths."""
    paths: dict[str, Path] = {}
    for name, each in examples.items():
        folder = root / each.place
        folder.mkdir(parents=True, exist_ok=True)
        paths[name] = folder / f"{each.name}.jsonl"
        paths[name].write_bytes(each.data)
        for beside, data in each.beside.items():
            path = folder / beside
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    return paths


def steno(*arguments: object, code: int = 0) -> bytes:
    """Run the command in this process; return what it wrote."""
    out = io.TextIOWrapper(io.BytesIO(), "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", out)
        with pytest.raises(SystemExit) as left:
            run([str(argument) for argument in arguments])
    assert (left.value.code or 0) == code, arguments
    out.seek(0)
    return out.buffer.read()


def listed_by(explorer: Explorer) -> list[SessionRow]:
    """Return the sessions in the index."""
    with explorer.house.index() as index:
        return list_sessions(index.connection, SessionFilter(), limit=ALL).rows


def every_surface(explorer: Explorer) -> dict[str, dict[str, Said]]:
    """Return what every surface says of every session that is listed, by path."""
    rows = listed_by(explorer)
    said: dict[str, dict[str, Said]] = {row.path: {} for row in rows}
    for surface, about in (
        ("ls", _said_by_ls(explorer)),
        ("explorer's list", _said_by_list(explorer, rows)),
        ("index", {row.path: _of_figures(row.title, row.figures) for row in rows}),
        ("session page", {row.path: _said_by_page(explorer, row) for row in rows}),
        ("show", {row.path: _said_by_show(row.path) for row in rows}),
        ("brief", {row.path: _said_by_brief(row.path) for row in rows}),
        ("search", _said_by_search(explorer)),
    ):
        for path, surfaces in said.items():
            if path in about:
                surfaces[surface] = about[path]
    return said


def differences(explorer: Explorer) -> dict[str, Any]:
    """Return what surfaces say otherwise than others, by path and by what they say."""
    odd: dict[str, Any] = {}
    for path, surfaces in every_surface(explorer).items():
        for field in Said._fields:
            values = {name: getattr(said, field) for name, said in surfaces.items()}
            values = {name: value for name, value in values.items() if value is not None}
            if len(set(values.values())) > 1:
                odd.setdefault(path, {})[field] = values
    return odd


def _of_figures(title: str, figures: Any) -> Said:
    return Said(one_line(title), figures.turns, figures.steps)


def one_line(title: str) -> str:
    """Return a title as all surfaces can say it: white space is one blank."""
    return " ".join(html.unescape(title).split()) or "Untitled"


def _said_by_ls(explorer: Explorer) -> dict[str, Said]:
    roots = [word for root in explorer.house.home.roots for word in ("--root", root)]
    rows = json.loads(steno("ls", *roots, "--limit", 0, "--all", "--json"))
    return {
        row["path"]: Said(one_line(row["title"]), row["turns"], row.get("steps"), _over(row["status"])) for row in rows
    }


def _said_by_show(path: str) -> Said:
    shown = json.loads(steno("show", path, "--json"))
    with open_file_session(discover_file(path)) as session:
        steps = count_session(session).steps
    return Said(one_line(shown["title"]), len(shown["turns"]), steps, _over(shown["status"]))


def _over(status: str) -> str:
    """Return a status; nothing said at all is no status of its own on every surface."""
    return "finished" if status == "empty" else status


def _said_by_brief(path: str) -> Said:
    (brief,) = build_briefs([SessionFile(path)])
    turns = len(brief.turns) + brief.elsewhere
    return Said(one_line(brief.title), turns, status=_over(brief.standing))


def _said_by_list(explorer: Explorer, rows: list[SessionRow]) -> dict[str, Said]:
    paths = {row.key: row.path for row in rows}
    said: dict[str, Said] = {}
    way = "/?part=rows"
    while way:
        text = explorer.get(way).text
        for key, row in re.findall(r'data-key="([^"]*)"(.*?)</li>', text, re.DOTALL):
            title = re.search(r'<div class="title"><a [^>]*>(.*?)</a>', row, re.DOTALL)
            turns = re.search(r'<span class="cell">([\d,]+)<span class="unit"> turn', row)
            state = re.search(r'<span class="vh">(.*?)</span>', row)
            assert title is not None
            assert turns is not None
            assert state is not None
            number = int(turns[1].replace(",", ""))
            status = _over(_STATES.get(state[1], state[1]))
            said[paths[key]] = Said(one_line(title[1]), number, status=status)
        more = re.search(r'<a class="link" href="([^"]*)" data-more', text)
        way = f"{html.unescape(more[1])}&part=rows" if more else ""
    return said


def _said_by_page(explorer: Explorer, row: SessionRow) -> Said:
    text = explorer.get(f"/s/{row.key}?whole=1").text
    title = re.search(r"<h1>(.*?)</h1>", text, re.DOTALL)
    facts = re.search(r"<span>([\d,]+) turns?, ([\d,]+) steps?</span>", text)
    assert title is not None, row.path
    assert facts is not None, row.path
    turns, steps = (int(number.replace(",", "")) for number in facts.groups())
    standing = re.search(r'id="standing">\s*<span class="(?:live|mid)"[^>]*>(.*?)</span>\s*<div', text, re.DOTALL)
    shown = re.sub(r"<.*?>", "", standing[1]) if standing else "Done"
    status = next((word for start, word in _STANDINGS.items() if shown.startswith(start)), "")
    return Said(one_line(title[1]), turns, steps, status or shown.lower())


def _said_by_search(explorer: Explorer) -> dict[str, Said]:
    """Return the titles, and how many turns there are if a hit in the last prompt is right."""
    with explorer.house.index() as index:
        messages = [row[0] for row in index.connection.execute("SELECT id FROM messages")]
        groups = group_hits(index.connection, messages)
        turns = dict(index.connection.execute("SELECT id, turn FROM messages").fetchall())
    said: dict[str, Said] = {}
    for group in groups:
        files = {path: file for file, path in group.files.items()}
        number = None
        if group.has_session_file and not group.has_rewound_turns and group.path in files:
            with open_file_session(discover_file(group.path)) as session:
                told = session.turns()
            prompts = [turn for turn in told if turn.prompt is not None]
            if prompts and prompts[-1].prompt is not None:
                place = (files[group.path] << FILE_ID_SHIFT) + prompts[-1].prompt.node.offset
                if turns.get(place):
                    number = turns[place] + len(told) - prompts[-1].number
        said[group.path] = Said(one_line(group.title), number)
    return said
