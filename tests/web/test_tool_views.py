"""Content of steps, records and gaps."""

import base64
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import VERSIONS, Json, image, session, text, tool
from tests.builders import Session as Made
from tests.builders.everything import everything
from tests.corpus import transcripts
from tests.session.open_sessions import opened, opened_file
from tests.web.step_samples import PICTURE, every_kind
from tests.web.test_render import HOSTILE, Tags

from steno.format.encode import encode_line
from steno.format.source import BytesSource
from steno.session.session import Session
from steno.session.transcript import Transcript, load
from steno.session.turns.steps import Step
from steno.web.tool_views import ViewContext, gap_view, record_view, step_content, subagent_brief, subagent_report
from steno.web.tool_views.generic_view import json_view
from steno.web.tool_views.record_images import image_bytes, images_in
from steno.web.urls import Links

LINKS = Links("m")
OURS = {
    "a": {"class", "href", "data-stays", "rel"},
    "b": set[str](),
    "blockquote": set[str](),
    "br": set[str](),
    "code": {"class", "title"},
    "col": {"class"},
    "colgroup": set[str](),
    "dd": {"class"},
    "del": set[str](),
    "details": set[str](),
    "div": {"class", "tabindex", "role", "aria-label"},
    "dl": {"class"},
    "dt": set[str](),
    "em": set[str](),
    "figcaption": set[str](),
    "figure": set[str](),
    "footer": set[str](),
    "h3": set[str](),
    "h4": {"class"},
    "h5": set[str](),
    "h6": set[str](),
    "header": {"class"},
    "hr": set[str](),
    "i": set[str](),
    "img": {"src", "alt", "loading", "width", "height"},
    "li": {"class"},
    "ol": {"class", "start"},
    "p": {"class"},
    "pre": {"class"},
    "s": set[str](),
    "section": {"class"},
    "span": {"class", "title"},
    "strong": set[str](),
    "summary": set[str](),
    "svg": {"class", "aria-hidden"},
    "table": {"class"},
    "tbody": set[str](),
    "td": {"class", "colspan"},
    "th": {"class", "scope"},
    "thead": {"class"},
    "tr": {"class"},
    "ul": {"class"},
    "use": {"href"},
}


def about(transcript: Transcript, *, full: bool = False, begin: int = 0, side: bool = False) -> ViewContext:
    return ViewContext("key", "", transcript, LINKS, full, begin, side, "step/1-0")


def all_steps(one: Session) -> Iterator[tuple[Step, Transcript]]:
    for turn in one.turns():
        yield from ((step, one.transcript) for step in turn.steps)
    for thread in one.all_agents:
        for turn in thread.turns:
            yield from ((step, thread.transcript) for step in turn.steps)


def inside(made: Made, verb: str, place: int = 0, *, full: bool = False, side: bool = False) -> str:
    """Return the body of a step, by its verb or kind."""
    one = opened(made)
    steps = [step for step, _ in all_steps(one) if verb in (step.verb, step.kind)]
    return str(step_content(steps[place], about(one.transcript, full=full, side=side)))


def told(html: str) -> str:
    return re.sub(r"\s+", " ", Tags(html).text)


def call(name: str, asked: Json, detail: object, said: str = "said") -> Made:
    one = session().user("Go.").assistant(tool(name, **asked))
    return one.result(said, detail=detail)


def assert_ours(html: str) -> None:
    """Fail where there is a tag or an attribute that no template of ours has."""
    for tag, attributes in Tags(html).found:
        assert tag in OURS, tag
        assert attributes.keys() <= OURS[tag], (tag, attributes)
        href = attributes.get("href") or "/"
        assert href.startswith(("/", "#i-", "http://", "https://", "mailto:")), href
        assert (attributes.get("src") or "/s/").startswith("/s/")


@pytest.fixture(scope="module")
def every() -> Made:
    return every_kind()


# Something for everything


def test_every_step_of_every_version_shows_something() -> None:
    for version in VERSIONS:
        for made in everything(version):
            one = opened(made)
            for step, transcript in all_steps(one):
                body = step_content(step, about(transcript))
                assert told(body).strip(), (version, step.kind, step.verb)
                assert_ours(body)


@pytest.mark.corpus
def test_every_step_of_every_real_session_shows_something(shared: Path) -> None:
    count = 0
    for path in transcripts(shared):
        one = opened_file(path)
        for step, transcript in all_steps(one):
            count += 1
            body = step_content(step, about(transcript))
            assert told(body).strip(), (path, step.kind, step.verb)
            assert_ours(body)
    assert count > 4_000


@pytest.mark.corpus
def test_every_record_and_gap_of_the_corpus_can_be_shown(shared: Path) -> None:
    for path in sorted((shared / "corpus" / "resume-cases").rglob("*.jsonl")):
        transcript = load(BytesSource(path.read_bytes()))
        for node in transcript.nodes[:40]:
            view = record_view(transcript.record(node), about(transcript))
            assert f"{node.offset:,}" in told(view)
            assert_ours(view)
        for gap in transcript.gaps:
            assert_ours(gap_view(gap, about(transcript)))


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("side", [False, True])
def test_every_kind_is_made_of_our_own_tags(every: Made, *, full: bool, side: bool) -> None:
    one = opened(every)
    for step, transcript in all_steps(one):
        assert_ours(step_content(step, about(transcript, full=full, side=side)))


# Hostile texts


_KEPT = ("type", "subtype", "uuid", "parentUuid", "id", "tool_use_id", "role", "name")


def _poisoned(value: Any, poison: str) -> Any:
    """Return a value with something evil in every text of it."""
    if isinstance(value, str):
        return f"{value}{poison}" if len(value) < 4_000 else value
    if isinstance(value, dict):
        fields = cast("Json", value)
        return {k: v if k in _KEPT else _poisoned(v, poison) for k, v in fields.items()}
    if isinstance(value, list):
        return [_poisoned(item, poison) for item in cast("list[Any]", value)]
    return value


@pytest.mark.parametrize("poison", HOSTILE)
def test_no_text_of_a_record_becomes_html(every: Made, poison: str) -> None:
    data = b"".join(encode_line(_poisoned(record, poison)) for record in every.records())
    transcript = load(BytesSource(data))
    one = Session(transcript, name="x")
    for step, found in all_steps(one):
        assert_ours(step_content(step, about(found)))
    for node in transcript.nodes[::7]:
        assert_ours(record_view(transcript.record(node), about(transcript)))


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
_TOOLS = st.sampled_from(
    [
        "Read",
        "Write",
        "Edit",
        "MultiEdit",
        "NotebookEdit",
        "Bash",
        "BashOutput",
        "TaskOutput",
        "Grep",
        "Glob",
        "LS",
        "WebFetch",
        "WebSearch",
        "TodoWrite",
        "TaskCreate",
        "TaskUpdate",
        "TaskList",
        "TaskGet",
        "Task",
        "Agent",
        "AskUserQuestion",
        "ExitPlanMode",
        "Skill",
        "SlashCommand",
        "SendMessage",
        "ToolSearch",
        "mcp__a__b",
        "Unknown",
    ]
)
_FIELDS = st.sampled_from(
    [
        "file",
        "filePath",
        "content",
        "structuredPatch",
        "originalFile",
        "stdout",
        "stderr",
        "filenames",
        "results",
        "newTodos",
        "oldTodos",
        "task",
        "tasks",
        "questions",
        "answers",
        "plan",
        "matches",
        "type",
        "cells",
        "base64",
        "numLines",
        "totalLines",
        "startLine",
        "mode",
        "persistedOutputPath",
        "statusChange",
        "usage",
        "totalTokens",
        "lines",
    ]
)


@given(
    _TOOLS,
    st.dictionaries(_FIELDS | st.text(max_size=8), _JSON, max_size=6),
    st.dictionaries(
        st.sampled_from(["file_path", "command", "todos", "edits", "questions", "old_string", "plan"]),
        _JSON,
        max_size=4,
    ),
    st.text(max_size=60),
)
def test_results_of_any_shape_are_shown(name: str, detail: Json, asked: Json, said: str) -> None:
    body = inside(call(name, asked, detail, said), "tool" if name not in {"Task", "Agent"} else "agent")
    assert_ours(body)
    assert told(body).strip()


@given(_JSON)
def test_tidy_json_is_all_there_and_nothing_else(value: object) -> None:
    made = json_view(value)
    assert_ours(made)
    assert told(made).strip()


@pytest.mark.parametrize("poison", HOSTILE)
def test_tidy_json_shows_hostile_names_and_values(poison: str) -> None:
    made = json_view({poison: poison, "in": [poison, {"deep": poison * 40}]})
    assert_ours(made)
    assert not {"script", "img", "svg"} & {tag for tag, _ in Tags(made).found}


# Files


def test_a_read_file_has_its_numbers_and_says_what_was_not_shown(every: Made) -> None:
    body = inside(every, "Read")
    (numbers,) = re.findall(r'class="no">([\d\n]+)<', body)
    assert numbers.split("\n") == [str(n) for n in range(54, 65)]
    assert "77 lines not shown to the model" in body
    assert '<span class="k">def</span>' in body


def test_a_read_file_is_known_from_what_the_model_was_told() -> None:
    made = session().user("Go.").assistant(tool("Read", file_path="a.py"))
    body = inside(made.result([text("    7→def f():\n    8→    pass")], detail=None), "Read")
    assert re.findall(r'class="no">([\d\n]+)<', body) == ["7\n8"]


def test_notebooks_and_documents_can_be_read(every: Made) -> None:
    assert "2 cells" in inside(every, "Read", 2)
    assert "<em>note</em>" in inside(every, "Read", 2)
    assert "48 kB" in inside(every, "Read", 3)


def test_the_recorded_patch_is_believed_first(every: Made) -> None:
    body = inside(every, "Edit")
    assert "edited by the user" in body
    assert "+4" in told(body)
    assert 'class="add"' in body


_EDIT = {"file_path": "a.py", "old_string": "b", "new_string": "x"}


def test_without_a_patch_the_whole_file_is_compared() -> None:
    detail = {"originalFile": "a\nb\nc\n", "structuredPatch": []}
    body = inside(call("Edit", _EDIT, detail), "Edit")
    assert re.findall(r'class="no">(\d*)<', body) == ["1", "1", "2", "", "", "2", "3", "3"]


def test_without_a_file_the_words_of_the_call_are_compared() -> None:
    body = inside(call("Edit", _EDIT, None), "Edit")
    assert "Line numbers unknown" in body
    assert 'class="del"' in body


def test_a_new_file_is_no_diff(every: Made) -> None:
    body = inside(every, "Write")
    assert "new file" in body
    assert 'class="diff"' not in body


def test_a_file_that_was_written_over_is_a_diff() -> None:
    detail = {"type": "update", "content": "a\nx\n", "originalFile": "a\nb\n", "structuredPatch": []}
    body = inside(call("Write", {"file_path": "a", "content": "a\nx\n"}, detail), "Write")
    assert 'class="del"' in body


def test_a_change_that_was_not_made_says_so() -> None:
    made = session().user("Go.").assistant(tool("Edit", **_EDIT))
    body = inside(made.result("<tool_use_error>String not found</tool_use_error>", error=True), "Edit")
    assert "not applied" in body
    assert "String not found" in body
    assert "tool_use_error" not in body


def test_several_edits_are_one_diff(every: Made) -> None:
    assert re.findall(r'class="(add|del)"', inside(every, "MultiEdit")) == ["del", "add", "del", "add"]
    assert "cell b2" in inside(every, "NotebookEdit")


def test_changes_stand_side_by_side_when_asked(every: Made) -> None:
    body = inside(every, "Edit", side=True)
    assert 'class="diff two"' in body
    assert "Inline" in body


# Commands


def test_a_failed_command_shows_its_end_and_its_exit(every: Made) -> None:
    body = inside(every, "Bash")
    assert '<span class="cmd">uv run pytest -q</span>' in body
    assert 'class="bad">exit 1<' in body
    assert "the last 30 of 63 lines" in body
    assert 'href="/s/key/step/1-0?full=1"' in body
    assert "63 lines" not in inside(every, "Bash", full=True)


def test_a_command_shows_colours_errors_and_what_was_printed_over(every: Made) -> None:
    body = inside(every, "Bash", 1)
    assert "100%" in body
    assert "50%" not in body
    assert "1 line overwritten" in body
    assert '<span class="x-yellow">old</span>' in body


def test_an_output_that_was_put_elsewhere_says_where(every: Made) -> None:
    body = inside(every, "Bash", 2)
    assert "full output, 6.0 kB saved to /home/ada/.claude/" in body
    older = inside(session("2.0.76").user("x").assistant(tool("Bash", command="yes")).saved("y\n" * 3000), "Bash")
    assert "saved to" in older


def test_a_command_in_the_background_and_one_that_was_refused(every: Made) -> None:
    assert "moved to background as b1" in inside(every, "Bash", 3)
    refused = inside(every, "Bash", 4)
    assert "Denied" in refused
    assert "not run" in refused
    assert "listening" in inside(every, "TaskOutput")


def test_a_huge_output_is_shown_piece_by_piece() -> None:
    lines = "".join(f"line {n}\n" for n in range(1_000_000))
    made = call("Bash", {"command": "seq"}, {"stdout": lines, "stderr": "", "interrupted": False})
    one = opened(made)
    step = next(step for step, _ in all_steps(one) if step.verb == "Bash")
    first = step_content(step, about(one.transcript))
    assert "30 of 1,000,000 lines" in first
    assert len(first) < 20_000
    seen, begin = 0, 0
    for _ in range(4):
        body = str(step_content(step, about(one.transcript, full=True, begin=begin)))
        assert f"line {seen}\n" in body
        assert len(body) < 500_000
        seen += body.count("line ") - body.count("inline ")
        begin = int(re.findall(r"full=1&amp;from=(\d+)", body)[-1])
        assert lines[:begin].count("\n") == seen


def test_one_endless_line_is_shown_piece_by_piece() -> None:
    made = call("Bash", {"command": "x"}, {"stdout": "a" * 3_000_000, "stderr": ""})
    assert "characters 1 to 12,000 of 3,000,000" in inside(made, "Bash")
    assert "characters 1 to 400,000 of 3,000,000" in inside(made, "Bash", full=True)


def test_a_few_long_lines_are_as_much_as_many_short_ones() -> None:
    lines = "".join("x" * 5_000 + "\n" for _ in range(20))
    made = call("Bash", {"command": "x"}, {"stdout": lines, "stderr": ""})
    assert "2 of 20 lines" in inside(made, "Bash")


def test_whatever_is_huge_in_a_record_is_shown_in_bounds(every: Made) -> None:
    huge = "w\n<b> " * 12_000
    data = b"".join(encode_line(_poisoned(record, huge)) for record in every.records())
    one = Session(load(BytesSource(data)), name="x")
    for step, found in all_steps(one):
        assert len(step_content(step, about(found))) < 420_000, step.verb


# What was found


def test_matches_stand_below_their_files(every: Made) -> None:
    body = inside(every, "Grep")
    assert re.findall(r'class="leaf">([^<]*)<', body) == ["a.py", "b.py"]
    assert re.findall(r'class="no">(\d+)<', body) == ["12", "13", "7"]
    assert "No files found" in inside(every, "Grep", 1)


def test_long_lists_are_cut_and_say_so(every: Made) -> None:
    body = inside(every, "Glob")
    assert "60 of 90" in body
    assert "truncated by the tool at 90" in body
    assert inside(every, "Glob", full=True).count("<li>") == 90
    assert "a.py" in inside(every, "LS")
    assert "2 tools" in inside(every, "ToolSearch")


def test_only_addresses_of_the_web_are_links(every: Made) -> None:
    body = inside(every, "WebSearch")
    assert 'href="https://example.org/"' in body
    assert "javascript:alert(1)" in body
    assert 'href="javascript' not in body
    fetched = inside(every, "WebFetch")
    assert "<strong>noon</strong>" in fetched
    assert "200 OK" in fetched


# Boards, questions, agents


def test_what_moved_on_a_board_is_marked(every: Made) -> None:
    body = inside(every, "TodoWrite")
    assert re.findall(r"<h4>([^<]*)</h4>", body) == ["To do 1", "In progress 1", "Done 2"]
    assert re.findall(r'class="(moved|new)">([^<]*)', body) == [
        ("new", "Describe it"),
        ("new", "Number old rows by account, day, id"),
        ("moved", "Read how migrations are run"),
    ]


def test_the_board_before_is_looked_for_where_it_was_not_kept() -> None:
    def todo(status: str) -> Json:
        return {"content": "Plot", "status": status}

    one = session().user("Go.").assistant(tool("TodoWrite", todos=[todo("pending")])).result("ok", detail=None)
    one.assistant(tool("TodoWrite", todos=[todo("completed")])).result("ok", detail=None)
    assert 'class="moved">Plot' in inside(one, "TodoWrite", 1)


def test_tasks_are_a_board_too(every: Made) -> None:
    body = inside(every, "TaskUpdate")
    assert re.findall(r"<h4>([^<]*)</h4>", body) == ["To do 1", "In progress 0", "Done 1"]
    assert 'class="moved">Plot' in body
    assert "pending → completed" in body
    assert "Print" in inside(every, "TaskList")


def test_questions_show_what_was_chosen(every: Made) -> None:
    body = inside(every, "AskUserQuestion")
    assert re.findall(r'class="chosen">.*?<span>([^<]*)', body) == ["Blue"]
    assert "Which colour?" in body


def test_plans_and_skills_are_shown(every: Made) -> None:
    assert "<li>One file</li>" in inside(every, "ExitPlanMode")
    assert "approved" in inside(every, "ExitPlanMode")
    assert "changelog" in inside(every, "Skill")


def test_a_sub_agent_shows_brief_figures_and_report(every: Made) -> None:
    one = opened(every)
    step = next(step for step, _ in all_steps(one) if step.kind == "agent")
    assert "ignores the date" in subagent_brief(step, about(one.transcript))
    report = subagent_report(step, about(one.transcript))
    assert "<code>merge.py:77</code>" in report
    assert "tool calls" in report
    assert f"/s/key/a/{step.agent.agent_id if step.agent else ''}" in report


def test_tools_of_servers_and_unknown_ones_are_tidy_json(every: Made) -> None:
    body = inside(every, "mcp__journal__write")
    assert "journal" in told(body)
    assert 'aria-label="JSON"' in body
    assert "/s/key/image/" in body
    unknown = inside(every, "Sparkle")
    assert "500 characters" in unknown
    assert "Raw line" not in unknown
    assert "deep" in inside(every, "zzz_block")


# What is no tool


def test_thoughts_are_words_a_signature_or_nothing_to_read(every: Made) -> None:
    assert "<strong>no count</strong>" in inside(every, "Thought")
    assert "Signature: " in inside(every, "Thought", 1)
    assert "Redacted thinking" in inside(every, "Thought", 2)


def test_a_hook_shows_what_it_decided(every: Made) -> None:
    body = told(inside(every, "PreToolUse:Bash"))
    assert "block" in body
    assert "not today" in body
    assert "./stop.sh" in inside(every, "Stop")
    assert "it broke" in inside(every, "Stop")


def test_errors_are_a_table_of_tries(every: Made) -> None:
    body = inside(every, "API error")
    assert re.findall(r"<td>(\d+ of \d+)</td>", body) == ["1 of 10", "2 of 10"]
    assert "529 Overloaded" in body
    assert "succeeded" in body
    assert "400 bad request" in inside(every, "API error", 1)


def test_what_waited_says_when_it_came(every: Made) -> None:
    body = inside(every, "Queued")
    assert re.search(r"Queued \d\d:\d\d:\d\d, delivered \d\d:\d\d:\d\d", body)
    assert "<em>migration</em>" in body


def test_attachments_show_what_was_attached(every: Made) -> None:
    assert 'class="no">1<' in inside(every, "file")
    assert "<em>kind</em>" in inside(every, "nested memory")
    assert "To do 1" in inside(every, "todo reminder")
    odd = told(inside(every, "zzz new"))
    assert "hello" in odd
    assert "odd" in odd


def test_a_local_command_shows_what_it_printed(every: Made) -> None:
    assert '<span class="x-bold">Context</span>' in inside(every, "/context")


# Pictures


def test_a_picture_is_known_by_its_bytes() -> None:
    svg = base64.b64encode(b"<svg onload='alert(1)'/>").decode()
    liar = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": svg}}
    made = session().user([text("See."), image(PICTURE, "image/jpeg"), liar])
    transcript = load(BytesSource(made.bytes()))
    record = transcript.record(transcript.nodes[0])
    first, second = images_in(record)
    assert (first.media_type, first.width) == ("image/png", 24)
    assert image_bytes(first) == PICTURE
    assert second.media_type == ""
    assert image_bytes(second) is None
    view = record_view(record, about(transcript))
    assert view.count("<img ") == 1
    assert "unknown bytes" in view


def test_a_picture_that_is_there_twice_is_shown_once(every: Made) -> None:
    assert inside(every, "Read", 1).count("<img ") == 1


def test_a_picture_that_is_too_big_is_only_named() -> None:
    data = base64.b64encode(PICTURE + bytes(22 << 20)).decode()
    big = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    transcript = load(BytesSource(session().user([big]).bytes()))
    record = transcript.record(transcript.nodes[0])
    assert [image_bytes(picture) for picture in images_in(record)] == [None]
    view = record_view(record, about(transcript))
    assert "too large" in view
    assert "<img " not in view


# Records and gaps


def test_a_record_is_shown_tidy_and_exact(every: Made) -> None:
    transcript = load(BytesSource(every.bytes()))
    record = transcript.record(transcript.nodes[3])
    view = Tags(record_view(record, about(transcript))).text
    assert record.line.decode() in view
    assert f"{record.length:,}" in view
    assert "In the catalogue" in view


def test_an_unknown_record_says_so_and_is_all_there() -> None:
    made = session().user("x").record("context-ledger", window=200_000, held={"files": 1})
    transcript = load(BytesSource(made.bytes()))
    view = record_view(transcript.record(transcript.nodes[-1]), about(transcript))
    assert "Not in the catalogue" in view
    assert "context-ledger" in view


def test_a_long_line_is_cut_and_the_rest_is_an_address_away() -> None:
    transcript = load(BytesSource(session().user("a" * 50_000).bytes()))
    one = ViewContext("key", "", transcript, LINKS, path="record/0")
    view = record_view(transcript.record(transcript.nodes[0]), one)
    assert "characters 1 to 12,000 of" in view
    assert 'href="/s/key/record/0?full=1"' in view


def test_a_gap_shows_its_bytes_and_what_happened() -> None:
    transcript = load(BytesSource(session().user("x").user("y").torn_tail(cut=40).bytes()))
    view = told(gap_view(transcript.gaps[0], about(transcript)))
    assert "line.torn" in view
    assert '"type":"user"' in view or "parentUuid" in view


def test_zero_bytes_are_shown_as_bytes() -> None:
    transcript = load(BytesSource(session().user("x").user("y").nul_run(1).bytes()))
    view = told(gap_view(transcript.gaps[0], about(transcript)))
    assert "00 00 00" in view
