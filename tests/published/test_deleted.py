"""What is deleted in a file in a dialect is shown where somebody asks for it, and nowhere else."""

import html
import json
import re
from pathlib import Path
from typing import Any, Final

import pytest
from tests.conftest import NOW
from tests.published.forms import Client, Flat, Nested, call
from tests.published.surfaces import every_surface, steno
from tests.web.explorer import Explorer, explorer

from steno.mcp_server.server import show_answer
from steno.mcp_server.tool_io import SessionAccess, ShowInput

NAME: Final = "0c9be80c-c704-4d9f-928e-22f500ed824f"
_CANARY: Final = re.compile(rb"ZAP\w*")


def _flat() -> bytes:
    made = Flat()
    made.user("Keep this")
    made.says("Kept.")
    made.user("ZAPprompt", isDeleted=True)
    made.says("ZAPanswer", isDeleted=True)
    made.calls("Bash", arguments={"command": "ZAPcommand"}, isDeleted=True)
    made.result("ZAPoutput")
    made.says("Go.")
    made.user("Second")
    made.calls("Bash", arguments={"command": "make"})
    made.result("ZAPresult", isDeleted=True)
    made.says("Done.")
    own = {"isSidechain": True, "userType": "external"}
    made.user("sub prompt", **own)
    made.says("ZAPside", isSidechain=True, isDeleted=True)
    made.says("sub answer", isSidechain=True)
    made.says("ZAPlast", isDeleted=True)
    return made.data()


def _nested() -> bytes:
    made = Nested()
    made.human("Keep this")
    made.says("Kept.", call("t1", "Bash", command="make"))
    made.says(call("t2", "Write", file_path="/a/ZAPfile", content="ZAPnew"), isDeleted=True)
    both = [
        {"type": "tool_result", "tool_use_id": "t1", "content": "made"},
        {"type": "tool_result", "tool_use_id": "t2", "content": "ZAPwritten"},
    ]
    made.add("tool_result", both)
    made.human("ZAPprompt", isDeleted=True)
    made.human("Second")
    made.says("Done.")
    return made.data()


def _mixed() -> bytes:
    made = Client()
    made.user("Keep this")
    made.says("Kept.")
    made.raw(type="user", message="ZAPprompt", isDeleted=True)
    made.raw(type="assistant", message="ZAPanswer", isDeleted=True)
    made.raw(type="user", message="Second")
    made.says("Done.")
    return made.data()


FORMS: Final = {"flat": _flat, "nested": _nested, "mixed": _mixed}


@pytest.fixture(params=FORMS)
def path(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STENO_NOW", NOW)
    made = tmp_path / "root" / "projects" / "-home-ada-work" / f"{NAME}.jsonl"
    made.parent.mkdir(parents=True)
    made.write_bytes(FORMS[request.param]())
    return made


def _found(data: bytes) -> set[bytes]:
    return set(_CANARY.findall(data))


QUIET: Final = (
    ("show",),
    ("show", "--json"),
    ("show", "--graph"),
    ("show", "--messages", "--all"),
    ("brief",),
    ("brief", "--json"),
    ("tail", "-n", "--last", "9", "--notes"),
    ("tail", "-n", "--last", "9", "--json"),
    *(("export", "-o", "-", "--format", name) for name in ("markdown", "html", "json", "txt")),
    ("export", "-o", "-", "--format", "messages"),
)


@pytest.mark.parametrize("words", QUIET, ids=" ".join)
def test_commands_leave_out_what_is_deleted(path: Path, words: tuple[str, ...]) -> None:
    command, *options = words
    made = steno(command, str(path), *options)
    assert b"Keep this" in made
    assert _found(made) == set()


def test_a_finding_does_not_quote_what_is_deleted(path: Path) -> None:
    made = path.read_bytes().replace(b'"ZAPprompt"', b'"ZAPprompt", "toolArguments": 1', 1)
    path.write_bytes(made.replace(b'"isDeleted": true', b'"isDeleted": true, "isMeta": "no"', 1))
    assert _found(steno("check", str(path), "--all", code=1)) == set()


def test_what_is_deleted_is_shown_on_request(path: Path) -> None:
    records = path.read_bytes().splitlines()
    uuid = next(record["uuid"] for record in map(json.loads, records) if "ZAPprompt" in str(record))
    for options in (("--all",), ("--all", "--json"), ("--records",), ("--raw", uuid), ("--at", uuid, "--all")):
        assert b"ZAPprompt" in _found(steno("show", str(path), *options)), options
    assert _found(steno("show", str(path), "--at", uuid)) == set()


def test_a_json_export_has_what_is_deleted_only_as_it_is(path: Path) -> None:
    data = path.read_bytes()
    exported = json.loads(steno("export", str(path), "--format", "json", "-o", "-"))
    (file,) = exported["files"]
    places = [piece["offset"] for piece in file["pieces"]]
    starts = [match.end() for match in re.finditer(rb"^|\n(?=.)", data)]
    assert places == starts
    left_out = {piece["offset"] for piece in file["pieces"] if piece.get("deleted")}
    assert left_out == {at for at in starts if _found(data[at:].split(b"\n")[0])}
    whole = steno("export", str(path), "--format", "json", "-o", "-", "--no-redact")
    assert _found(whole) == _found(data)


def test_a_sub_agent_has_what_is_deleted_only_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STENO_NOW", NOW)
    made = Nested()
    made.human("Delegate")
    owner = made.says(call("t1", "Task", subagent_type="looker", prompt="Look"))
    own = {"isSidechain": True}
    made.human("Look", **own, userType="external")
    made.says("ZAPside", isDeleted=True, **own)
    made.says("Seen.", **own)
    made.result("t1", "Seen.", parentUuid=owner)
    made.says("Done.")
    file = tmp_path / f"{NAME}.jsonl"
    file.write_bytes(made.data())
    assert _found(steno("show", str(file))) == set()
    assert _found(steno("show", str(file), "--all")) == {b"ZAPside"}


def _pages(found: Explorer, key: str) -> dict[str, bytes]:
    """Return every page about a session that leads to others, but not those of records."""
    seen: dict[str, bytes] = {}
    left = [f"/s/{key}?whole=1", f"/s/{key}", "/?part=rows"]
    left += [f"/api/v1/sessions/{key}{part}" for part in ("", "/turns", "/steps", "/files")]
    while left and len(seen) < 120:
        way = left.pop(0)
        if way in seen or "/record/" in way:
            continue
        seen[way] = found.get(way).body
        links = re.findall(r'(?:href|data-src)="(/[^"]*)"', seen[way].decode("utf-8", "replace"))
        left += [html.unescape(link) for link in links if key in link]
    return seen


def test_pages_and_interfaces_leave_out_what_is_deleted(path: Path, tmp_path: Path) -> None:
    root = str(tmp_path / "root")
    with explorer(str(tmp_path / "index"), root) as found:
        (row,) = json.loads(found.get("/api/v1/sessions").body)["sessions"]
        pages = _pages(found, row["key"])
        uuid = next(
            record["uuid"] for record in map(json.loads, path.read_bytes().splitlines()) if "ZAPprompt" in str(record)
        )
        assert b"ZAPprompt" in found.get(f"/s/{row['key']}/record/{uuid}").body
    assert len(pages) > 10
    assert {way for way, body in pages.items() if _found(body)} == set()
    library = SessionAccess((root,))
    for number in (1, 2):
        told = "\n".join(show_answer(ShowInput(session=NAME, turn=number, detail=True), library))
        assert _found(told.encode()) == set()
    told = "\n".join(show_answer(ShowInput(session=NAME, record=uuid), library))
    assert _found(told.encode()) == set()


# Calls whose result alone is deleted


def _alone(*, goes_on: bool) -> bytes:
    made = Flat()
    made.user("go")
    made.calls("Bash", arguments={"command": "pytest"})
    made.result("ZAP 1 failed", isDeleted=True)
    if goes_on:
        made.says("Done.")
        made.user("more")
        made.says("ok")
    return made.data()


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_call_whose_result_is_deleted_is_told_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, goes_on: bool
) -> None:
    monkeypatch.setenv("STENO_NOW", NOW)
    folder = tmp_path / "root" / "projects" / "-home-ada-work"
    folder.mkdir(parents=True)
    file = folder / f"{NAME}.jsonl"
    file.write_bytes(_alone(goes_on=goes_on))
    known = ("Bash", "unknown", "result deleted")
    story = json.loads(steno("show", str(file), "--json"))
    assert _ended(story["turns"][0]["steps"]) == [known]
    lines = steno("tail", "-n", "--last", "9", "--json", str(file)).splitlines()
    events = [json.loads(line) for line in lines]
    assert _ended(each["step"] for each in events if each["event"] == "outcome") == [known]
    brief = steno("brief", str(file)).decode()
    assert re.search(r"▸ pytest +result deleted", brief), brief
    assert b"result deleted\n" in steno("export", str(file), "--format", "txt", "-o", "-")
    for shown_by in (steno("show", str(file)), steno("tail", "-n", "--last", "9", str(file))):
        assert re.search(r"pytest +result deleted +1\.0 s\n", shown_by.decode()), shown_by
    with explorer(str(tmp_path / "index"), str(tmp_path / "root")) as found:
        (row,) = json.loads(found.get("/api/v1/sessions").body)["sessions"]
        turns = json.loads(found.get(f"/api/v1/sessions/{row['key']}/turns").body)["turns"]
        assert _ended(turns[0]["steps"]) == [known]
        (surfaces,) = every_surface(found).values()
    statuses = {each.status for each in surfaces.values()} - {None}
    assert statuses == {"finished" if goes_on else "interrupted"}


def _ended(steps: Any) -> list[tuple[str, str, str]]:
    return [(step["verb"], step["state"], step["outcome"]) for step in steps]
