"""What leaves is what was there, in every format, and nothing of what was to be masked."""

import json
import re
from base64 import b64decode
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.builders import session, thinking, tool

from steno.demo.recording import write_demo
from steno.llm.testserver.request_validator import validate_request
from steno.report.export.export_formats import api_messages
from steno.report.export.export_options import LEVELS, ExportFormat, ExportLevel
from steno.report.export.session_export import ExportJob, export_chunks, write_sessions
from steno.report.export.session_masking import open_masked
from steno.report.export.steps_folder import StepsJob, sync_steps
from steno.report.export.steps_format import session_steps
from steno.sanitize.secret_masker import Masker
from steno.session.resume.api_rules import find_breaches
from steno.store.discovery import DiscoveredFile
from steno.store.session_lookup import find, sessions_newest_first

KEY = "ghp_4f9b2c8d1e7a6f5b3c0d9e8f7a6b5c4d3e2f"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> list[DiscoveredFile]:
    root = write_demo(str(tmp_path_factory.mktemp("demo") / "root")).root
    return sessions_newest_first((root,))


@pytest.fixture
def told(tmp_path: Path) -> DiscoveredFile:
    """A session in which a key stands in every place that has words."""
    made = session(seed="keys").user(f"Use {KEY} in /home/ada/work")
    made.assistant(thinking(f"The key is {KEY}."), f"I use {KEY}.", tool("Bash", command=f"curl -u {KEY} x"))
    made.results(f"done with {KEY}")
    made.assistant(f"Ready: {KEY}").rename(f"Title {KEY}").done()
    for name, data in made.files().items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return find("last", (str(tmp_path),))


def _whole(found: DiscoveredFile, kind: ExportFormat, level: ExportLevel = "full", *, mask: bool = True) -> bytes:
    return b"".join(export_chunks(found, ExportJob(kind, level, Masker() if mask else None)))


@pytest.mark.parametrize("kind", ["markdown", "txt", "json", "messages"])
def test_no_format_holds_what_is_masked(told: DiscoveredFile, kind: ExportFormat) -> None:
    shown = _whole(told, kind)
    assert KEY.encode() not in shown
    assert b"<masked:github-token>" in shown.replace(b"\\", b"")
    assert b"/home/ada" not in shown
    assert KEY.encode() in _whole(told, kind, mask=False)


def test_names_of_files_hold_nothing_either(told: DiscoveredFile, tmp_path: Path) -> None:
    for number, kind in enumerate(("markdown", "json")):
        job = ExportJob(kind, masker=Masker(), out=f"{tmp_path}/out{number}/")
        (path,) = write_sessions([told], job)
        assert "4f9b2c" not in path


def test_what_was_thought_is_left_out_where_its_signature_no_longer_fits(told: DiscoveredFile) -> None:
    masked = api_messages(open_masked(told, Masker()), masked=True)
    bare = api_messages(open_masked(told, None), masked=False)
    assert _kinds(bare).count("thinking") == 1
    assert _kinds(masked).count("thinking") == 0
    assert find_breaches(masked) == []


def _kinds(found: list[dict[str, Any]]) -> list[str]:
    return [block["type"] for each in found for block in each["content"] if not isinstance(block, str)]


def _refused(found: list[dict[str, Any]]) -> object:
    body: dict[str, Any] = {"model": "m", "max_tokens": 100, "messages": found}
    names = {
        block["name"]
        for each in found
        if not isinstance(each["content"], str)
        for block in each["content"]
        if block.get("type") == "tool_use"
    }
    body["tools"] = [{"name": name, "input_schema": {"type": "object"}} for name in sorted(names) if name]
    return validate_request(body)


def test_messages_of_all_corpora_are_what_the_api_accepts(shared: Path) -> None:
    folders = ("real-client/2.1.325", "real-client/2.0.76", "public", "resume-cases")
    seen = sent = 0
    for folder in folders:
        for path in sorted((shared / "corpus" / folder).rglob("*.jsonl"))[:70]:
            leaving = open_masked(find(str(path)), Masker())
            found = api_messages(leaving, masked=True)
            assert find_breaches(found) == [], path
            assert not found or _refused(found) is None, (path, _refused(found))
            seen += 1
            sent += bool(found)
    assert seen > 150
    assert sent > 100


def test_messages_of_the_demo_pass_the_server_that_refuses_what_the_api_refuses(demo: list[DiscoveredFile]) -> None:
    for each in demo:
        found = api_messages(open_masked(each, Masker()), masked=True)
        assert not found or _refused(found) is None, each.path


def test_json_has_every_byte_of_the_files(demo: list[DiscoveredFile]) -> None:
    for each in demo:
        told = json.loads(_whole(each, "json", mask=False))
        for file in told["files"]:
            raw = next(Path(each.path).parent.rglob(file["name"])).read_bytes()
            assert file["size"] == len(raw)
            end = 0
            for piece in file["pieces"]:
                assert piece["offset"] == end
                end += piece["length"]
                held = raw[piece["offset"] : end]
                if "base64" in piece:
                    assert b64decode(piece["base64"]) == held.removesuffix(piece.get("ending", "").encode())
                else:
                    assert msgspec.json.decode(held) == piece["record"]
            assert end == len(raw)


def test_json_masks_a_secret_that_goes_over_several_damaged_lines(tmp_path: Path) -> None:
    made = session(seed="pem").user("Hi.").assistant("Ho.").done()
    letters = "MIIEowIBAAKCAQEA0Z3VS5JJcds3xfnygWyF8PbnGy0AHB7MhgwMbRvI0MBZhpI"
    key = f"-----BEGIN RSA PRIVATE KEY-----\n{letters}\nq{letters}\n-----END RSA PRIVATE KEY-----\n"
    path = tmp_path / f"{made.session_id}.jsonl"
    path.write_bytes(made.bytes() + key.encode() + made.bytes())
    told = json.loads(_whole(find(str(path)), "json"))
    pieces = [piece for file in told["files"] for piece in file["pieces"]]
    gaps = b"".join(b64decode(piece["base64"]) for piece in pieces if "base64" in piece)
    assert b"masked:private-key" in gaps
    assert letters.encode() not in gaps
    assert sum("record" in piece for piece in pieces) == 2 * len(made.bytes().splitlines())


def test_json_holds_the_lines_as_they_were_written(told: DiscoveredFile) -> None:
    whole = _whole(told, "json", mask=False)
    for line in Path(told.path).read_bytes().splitlines():
        assert line in whole


def test_steps_are_as_the_description_has_them(demo: list[DiscoveredFile], tmp_path: Path) -> None:
    job = StepsJob(f"{tmp_path}/steps/", (demo[0].root,), Masker())
    folders = sync_steps(job, demo).written
    assert len(folders) > 10
    kinds: set[str] = set()
    for folder in (tmp_path / "steps" / name for name in folders):
        steps = [json.loads(line) for line in (folder / "steps.jsonl").read_bytes().splitlines()]
        about = json.loads((folder / "metadata.json").read_bytes())
        assert [step["step_id"] for step in steps] == list(range(1, len(steps) + 1))
        assert about["step_count"] == len(steps)
        assert about["session_id"] == folder.name
        for step in steps:
            kinds.add(step["type"])
            assert len(step["content_summary"]) <= 200
            assert {"raw_uuid", "parent_uuid", "timestamp", "session_id"} <= set(step)
    assert kinds == {"USER_MESSAGE", "ASSISTANT_MESSAGE", "TOOL_CALL", "TOOL_RESULT"}


def test_steps_of_sub_agents_are_left_out(demo: list[DiscoveredFile]) -> None:
    leaving = [open_masked(each, None) for each in demo]
    for each in leaving:
        side = {node.uuid for node in each.session.transcript.nodes if node.sidechain}
        assert not side & {step["raw_uuid"] for step in session_steps(each.session)}


@pytest.mark.parametrize("kind", ["markdown", "txt"])
def test_each_level_tells_less_than_the_one_before(demo: list[DiscoveredFile], kind: ExportFormat) -> None:
    for each in demo[:6]:
        sizes = [len(_whole(each, kind, level)) for level in LEVELS]
        assert sizes == sorted(sizes, reverse=True), each.path


def test_markdown_holds_no_html_that_acts(tmp_path: Path) -> None:
    made = session(seed="md").user("<img src=x onerror=alert(1)> `<b>`")
    made.assistant("<script>run()</script>\n\n```html\n<i>\n```\n![x](http://far/x.png)").done()
    path = tmp_path / f"{made.session_id}.jsonl"
    path.write_bytes(made.bytes())
    text = _whole(find(str(path)), "markdown").decode()
    assert "&lt;script>" in text
    assert "&lt;img" in text
    assert "\n<i>\n" in text
    assert "!\\[x]" in text


def test_text_holds_nothing_that_acts_on_a_terminal(tmp_path: Path) -> None:
    evil = "a\x1b[31m\u202eb\x07"
    made = session(seed="txt", cwd=f"/srv/{evil}").user(evil).rename(evil)
    made.assistant(tool(f"mcp__x__{evil}", path=evil)).result(evil).assistant(evil).done()
    path = tmp_path / f"{made.session_id}.jsonl"
    path.write_bytes(made.bytes())
    for kind in ("txt", "markdown"):
        text = _whole(find(str(path)), kind, mask=False).decode()
        assert not set(text) & set("\x1b\u202e\x07"), kind
        assert "mcp" in text


@pytest.mark.parametrize("kind", ["markdown", "txt"])
@pytest.mark.parametrize("level", ["full", "high", "low"])
def test_each_compaction_inside_a_turn_stands_where_it_was(
    tmp_path: Path, kind: ExportFormat, level: ExportLevel
) -> None:
    made = session("2.1.42").user("go")
    for number in range(3):
        made.assistant(tool("Bash", command=f"make step{number}")).result("x")
        made.compact(f"So far {number}.", trigger="auto")
    path = tmp_path / f"{made.session_id}.jsonl"
    path.write_bytes(made.assistant("All done.").bytes())
    text = _whole(find(str(path)), kind, level).decode()
    seen = re.findall(r"step\d|compaction|All done", text, re.IGNORECASE)
    marks = [mark.casefold() for mark, _ in groupby(seen)]
    here = "compaction"
    assert marks == ["step0", here, "step1", here, "step2", here, "all done"]
