"""The list, the session page, the comparison and the command line show the same figures."""

import re
from pathlib import Path
from typing import Any

import pytest
from tests.web.explorer import Explorer, explorer

from steno.report.compare import build_side
from steno.report.compare.comparison import facts_from_index
from steno.report.session_list import SessionFilter, SessionRow, list_sessions, usage_by_session
from steno.report.session_lookup import count_copied_responses
from steno.store.discovery import discover_agents, discover_file
from steno.store.session_counts import count_agents, count_turns
from steno.store.session_lookup import open_file_session
from steno.web.views.session_view import SessionView

_COUNTS = ("turns", "steps", "failed", "agents", "compactions", "branches")


def sessions(found: Explorer) -> list[SessionRow]:
    with found.house.index() as index:
        return list_sessions(index.connection, SessionFilter(), limit=10_000).rows


def differing(found: Explorer, listed: SessionRow) -> dict[str, Any]:
    """Return what the list says of a session and its page, or a comparison, does not."""
    prices = found.house.prices
    with found.house.index() as index, open_file_session(discover_file(listed.path)) as session:
        page = SessionView(session, prices).figures
        known = facts_from_index(index.connection, listed, prices)
        side = build_side(session, known)
        spent = usage_by_session(index.connection, [listed.file], prices).get(listed.file)
        copied = count_copied_responses(index.connection, listed.file)
        used = session.usage
    said: dict[str, tuple[Any, ...]] = {"figures": (listed.figures, page)}
    said |= {name: (getattr(listed.figures, name), getattr(page, name), getattr(side, name)) for name in _COUNTS}
    said["worked"] = (listed.figures.worked, page.worked, round(side.worked * 1000))
    said["path"] = (page.steps, sum(not item.is_prompt for item in side.path))
    if known.models and page.model:
        said["models"] = (page.model in known.models, "<synthetic>" not in known.models, True)
    if not copied and spent is not None:
        said["tokens"] = ((spent.context, spent.output), (used.context, used.output))
    return {name: some for name, some in said.items() if len(set(some)) > 1}


def odd_ones(found: Explorer) -> dict[str, Any]:
    every = {listed.path: differing(found, listed) for listed in sessions(found)}
    return {path: odd for path, odd in every.items() if odd}


def test_every_figure_of_the_demo_is_the_same_everywhere(demo: Explorer) -> None:
    assert odd_ones(demo) == {}
    every = [listed.figures for listed in sessions(demo)]
    # Each is there to be wrong.
    assert all(any(getattr(each, name) for each in every) for name in (*_COUNTS, "worked"))


def test_the_command_line_counts_the_same(demo: Explorer) -> None:
    for listed in sessions(demo):
        found = discover_file(listed.path)
        assert count_turns(found) == listed.figures.turns
        assert count_agents(found, discover_agents(found)) == listed.figures.agents


def test_the_pages_show_these_figures(demo: Explorer) -> None:
    rows = _rows(demo.get("/").text)
    every = sessions(demo)
    assert set(rows) == {listed.key for listed in every}
    for listed, other in zip(every, [*every[1:], every[0]], strict=True):
        figures, row = listed.figures, rows[listed.key]
        page = demo.get(f"/s/{listed.key}").text
        facts = re.findall(r"<span>(.*?)</span>", page[page.index('class="facts"') :][:2000])
        assert f'>{figures.turns}<span class="unit">' in row
        assert f"{_said(figures.turns, 'turn')}, {_said(figures.steps, 'step')}" in facts
        for number, word in ((figures.failed, "failed step"), (figures.agents, "sub-agent")):
            shown = re.search(rf"(\d+)<span class=\"vh\"> {word}", row)
            assert (int(shown[1]) if shown else 0) == number
        cost = re.search(r'class="cell cost">(.*?)<', row)
        money = re.search(r'<b class="money">(.*?)</b>', page)
        assert (cost and cost[1]) == (money[1] if money else "")
        table = demo.get(f"/compare?a={listed.key}&b={other.key}").text
        for name, number in (("Turns", figures.turns), ("Steps", figures.steps)):
            line = re.search(rf'rowheader">{name}</div><div [^>]*>(.*?)</div>', table)
            assert line is not None
            assert line[1] == (f"{number:,}" if number else "none")


def test_compactions_of_the_demo_make_the_context_smaller(demo: Explorer) -> None:
    seams = 0
    for listed in sessions(demo):
        with open_file_session(discover_file(listed.path)) as session:
            for seam in session.compactions:
                seams += 1
                assert seam.pre_tokens is not None
                assert seam.context is None or seam.context < seam.pre_tokens
    assert seams >= 2


def _rows(text: str) -> dict[str, str]:
    found = re.findall(r'<li class="row[^"]*"[^>]*data-key="([^"]*)"(.*?)</li>', text, re.DOTALL)
    return dict(found)


def _said(number: int, word: str) -> str:
    return f"{number:,} {word}" + "s" * (number != 1)


def odd_in(shared: Path, folder: Path, *names: str) -> tuple[int, dict[str, Any]]:
    roots = [str(shared / "corpus" / name) for name in names]
    with explorer(str(folder / "index"), *roots) as found:
        return len(sessions(found)), odd_ones(found)


@pytest.mark.corpus
def test_so_it_is_with_sessions_of_the_newest_client_and_with_damaged_ones(shared: Path, tmp_path: Path) -> None:
    number, odd = odd_in(shared, tmp_path, "real-client/2.1.325", "resume-cases")
    assert odd == {}
    assert number > 100


@pytest.mark.faults
@pytest.mark.corpus
def test_so_it_is_with_every_real_session(shared: Path, tmp_path: Path) -> None:
    number, odd = odd_in(shared, tmp_path, "real-client", "public", "resume-cases")
    assert odd == {}
    assert number > 300
