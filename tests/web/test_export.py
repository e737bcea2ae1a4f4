"""Exported pages: placeholders are replaced, regardless of the session's content."""

import json
import re
from pathlib import Path

import pytest
from tests.builders import session, tool

from steno.report.export.session_export import ExportJob
from steno.sanitize.html import SafeHtml
from steno.store.session_lookup import sessions_newest_first
from steno.web.export import session_pages as folder
from steno.web.export.session_pages import DeferredPieces, render_pages

_NASTY = "\0" + "0\0" + "a\0b" + "\x000\x00"


def test_what_is_laid_aside_stands_where_it_was_also_inside_of_another() -> None:
    aside = DeferredPieces()
    inner = aside.defer_step(SafeHtml("<b>"), SafeHtml("inner…"), SafeHtml("</b>"))
    outer = aside.defer_step(SafeHtml("<p>"), inner, SafeHtml("</p>"))
    page = b"".join(aside.to_bytes(f"<main>→ {outer} and {inner}</main>"))
    assert page.decode() == "<main>→ <p><b>inner…</b></p> and <b>inner…</b></main>"
    assert aside.take_length() == len("inner…".encode()) + len("<b>inner…</b>".encode())
    assert aside.take_length() == 0


def _root(folder: Path) -> Path:
    place = folder / "projects" / "-work-app"
    place.mkdir(parents=True)
    made = session().user(f"Go. {_NASTY}")
    made.assistant(tool("Read", file_path=f"{_NASTY}.py"))
    made.result(f"1→def f():  # {_NASTY}\n2→    return 1", detail=None)
    made.assistant(tool("Bash", command=f"echo {_NASTY}")).result(_NASTY * 50)
    made.assistant(f"Done. {_NASTY} **and** `{_NASTY}`")
    (place / f"{made.session_id}.jsonl").write_bytes(made.bytes())
    return folder


def test_zero_bytes_in_a_session_are_shown_and_stand_for_nothing(tmp_path: Path) -> None:
    files = sessions_newest_first((str(_root(tmp_path)),))
    pages = {name: b"".join(parts) for name, parts in render_pages(files, ExportJob())}
    assert len(pages) == len(files) + 1
    for data in pages.values():
        assert b"\0" not in data
    (page,) = (data.decode() for name, data in pages.items() if name != "index.html")
    assert page.count("a␀b") > 50
    assert re.search(r"<details class=\"step[^>]*>.*?</details>", page, re.DOTALL) is not None


@pytest.mark.parametrize(("most", "painted"), [(1, True), (0, False)])
def test_of_many_sessions_the_pages_paint_code_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, *, painted: bool
) -> None:
    monkeypatch.setattr(folder, "_MAX_HIGHLIGHTED_SESSIONS", most)
    files = sessions_newest_first((str(_root(tmp_path)),))
    for name, parts in render_pages(files, ExportJob()):
        data = b"".join(parts)
        if name != "index.html":
            code = data.partition(b"<main")[2]
            assert (b'<span class="k">def</span>' in code) is painted
            assert (b'class="code l-py"' in code) is not painted


def test_the_name_of_an_unknown_record_is_as_short_as_any(tmp_path: Path) -> None:
    place = tmp_path / "projects" / "-work-app"
    place.mkdir(parents=True)
    made = session().user("Go.").assistant("Done.")
    odd = {"type": "<b>" + "odd" * 2000, "uuid": "odd", "parentUuid": None, "timestamp": ""}
    data = made.bytes() + json.dumps(odd).encode() + b"\n"
    (place / f"{made.session_id}.jsonl").write_bytes(data)
    (found,) = sessions_newest_first((str(tmp_path),))
    page = folder.render_page_bytes(found, ExportJob()).decode()
    names = re.findall(r"<b>(&lt;b&gt;(?:odd)*o?d?)</b>", page)
    assert [len(name) for name in names] == [len("&lt;b&gt;") + 97]
