"""What 003 (OpenContext) wants of each turn is in a brief: texts, calls, sub-agents, snapshots."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.agent.loop_harness import Stage
from tests.builders import Session as Made
from tests.builders import session, tool
from tests.published.opencontext import PROJECT, SESSION, ContextFile, backup, call
from tests.session.open_sessions import opened

from steno.agent.context.compaction import ContextCompactor
from steno.agent.loop import Agent
from steno.format.source import BytesSource
from steno.index.database import open_index
from steno.llm.testserver.scripted_responder import ScriptedResponder
from steno.report.brief import Brief, as_json, as_markdown, build_brief
from steno.report.file_history.history import history
from steno.report.file_history.touched_files import TouchedFilter, files_of_session, list_touched_files, sort_touched
from steno.session.session import Session
from steno.session.transcript import load

_KEY = "ghp_" + "a1B2" * 9


def found(brief: Brief) -> dict[str, Any]:
    """Return a brief as programs get it."""
    (only,) = as_json(brief)["briefs"]
    return only


# Texts and calls


def test_003_all_texts_of_a_turn_are_told_in_order_with_the_calls_between_them() -> None:
    made = ContextFile().user("Fix the login bug")
    made.assistant({"type": "thinking", "thinking": "Hm.", "signature": "x"}, "First I look.")
    made.assistant("Two words before.", call("t1", "Read", file_path=f"{PROJECT}/a.py"))
    made.result("t1").assistant("It is the cookie.").assistant(call("t2", "Bash", command="make"))
    made.result("t2").assistant("Built.").assistant("Done.")
    (turn,) = made.brief().turns
    rows = sorted([*turn.texts, *turn.calls], key=lambda each: each.order)
    assert [each.order for each in rows] == list(range(7))
    told = [getattr(each, "text", "") or getattr(each, "tool", "") for each in rows]
    assert told == [*("First I look.", "Two words before.", "Read", "It is the cookie.", "Bash"), *("Built.", "Done.")]
    assert turn.answer == "Built.\n\nDone."
    assert [each.text for each in turn.texts if each.final] == ["Built.", "Done."]
    written = as_markdown(made.brief()).partition("### Turn")[2]
    places = [written.index(f"`{words}`") for words in ("First I look.", "It is the cookie.", "Bash")]
    assert places == sorted(places)
    assert "Hm." not in written


def test_003_what_the_client_writes_in_the_models_name_is_marked() -> None:
    made = ContextFile().user("Go.").assistant("I begin.", call("t1", "Bash", command="ls"))
    made.result("t1").assistant("API Error: 529", isApiErrorMessage=True, message={"model": "<synthetic>"})
    (turn,) = made.brief().turns
    assert [(each.text, each.synthetic) for each in turn.texts] == [("I begin.", False), ("API Error: 529", True)]


def test_003_calls_have_their_parameters_and_their_outcomes() -> None:
    long = "x" * 50_000
    made = ContextFile().user("Go.")
    made.assistant(call("t1", "Bash", command="make test", description="Run", timeout=5000))
    made.result("t1", "Exit code 1\nboom", is_error=True)
    made.assistant(call("t2", "Write", file_path=f"{PROJECT}/a.py", content=long))
    made.result("t2", "ok")
    made.assistant(call("t3", "TodoWrite", todos=[{"content": "a", "status": "pending"}]))
    made.result("t3", "ok").assistant(call("t4", "EnterPlanMode"))
    made.assistant(call("t5", "Mystery", deep=[[[1]]], big=9**90, nothing=None))
    made.assistant("Done.")
    (turn,) = found(made.brief())["turns"]
    rows = {each["id"]: each for each in turn["calls"]}
    assert list(rows) == ["t1", "t2", "t3", "t4", "t5"]
    assert [each["state"] for each in turn["calls"]] == ["failed", "ok", "ok", "open", "open"]
    given = {"command": "make test", "description": "Run", "timeout": 5000}
    assert (rows["t1"]["input"], rows["t1"]["cut"]) == (given, {})
    assert rows["t1"]["outcome"].startswith("exit 1")
    assert rows["t2"]["input"]["content"] == "x" * 2_000
    assert rows["t2"]["cut"] == {"content": 50_000}
    assert rows["t3"]["input"] == {"todos": [{"content": "a", "status": "pending"}]}
    assert rows["t4"]["input"] == {}
    assert rows["t5"]["input"]["deep"] == [[[1]]]
    assert "[50,000 characters]" in as_markdown(made.brief())
    whole = as_json(made.brief(full=True), full=True)["briefs"][0]["turns"][0]["calls"][1]
    assert (whole["input"]["content"], whole["cut"]) == (long, {})
    assert long in as_markdown(made.brief(full=True), full=True)


def test_003_parameters_of_any_depth_and_size_are_told() -> None:
    deep: Any = "end"
    for _ in range(200):
        deep = {"a": [deep]}
    many = [{"old": "y" * 900, "new": "z" * 900} for _ in range(5)]
    made = ContextFile().user("Go.").assistant(call("t1", "Mystery", deep=deep, edits=many))
    (turn,) = found(made.brief())["turns"]
    (row,) = turn["calls"]
    assert isinstance(row["input"]["deep"], str)
    assert row["input"]["edits"].startswith('[{"old": "yyy')
    assert row["cut"]["edits"] == len(json.dumps(many))
    assert as_markdown(made.brief(full=True), full=True)


# Turns


@pytest.mark.parametrize(
    ("content", "fields", "origin"),
    [
        ("Fix the login bug", {}, "human"),
        ([{"type": "text", "text": "Fix the login bug"}], {}, "human"),
        ("It says [Request interrupted by user] here.", {}, "human"),
        ("<bash-input>ls</bash-input>", {}, "shell"),
        ("<command-name>/review</command-name><command-args>a</command-args>", {}, "command"),
        ("<task-notification><summary>Done</summary></task-notification>", {}, "notification"),
        ("Seen by the model alone.", {"isMeta": True}, None),
        ("[Request interrupted by user]", {}, None),
        ("<local-command-stdout>x</local-command-stdout>", {}, None),
    ],
)
def test_003_a_human_turn_is_told_by_what_the_record_says(
    content: Any, fields: dict[str, Any], origin: str | None
) -> None:
    made = ContextFile().user("First.").assistant("Yes.").user(content, **fields).assistant("Ok.")
    origins = [turn.origin for turn in made.brief().turns]
    assert origins == ["human", *([origin] if origin else [])]


def test_003_skipped_are_thoughts_results_and_progress_that_repeat_others() -> None:
    made = ContextFile().user("Go.")
    made.assistant({"type": "thinking", "thinking": "MARK-1", "signature": "x"})
    made.assistant(call("t1", "Bash", command="make"))
    data = {"type": "bash_progress", "output": "MARK-2", "fullOutput": "MARK-2"}
    made.progress("t1", data).progress("t1", {"type": "hook_progress", "command": "MARK-3"})
    made.linked("system", subtype="informational", content="MARK-4")
    made.result("t1", "one\ntwo\nMARK-5").assistant("Done.")
    assert "MARK" not in json.dumps(as_json(made.brief()))


# Sub-agents


def delegated(version: str) -> Made:
    one = session(version, seed=4).user("Look into it.")
    name = "Task" if version != "2.1.325" else "Agent"
    given = {"description": "Find it", "prompt": "Find where.", "subagent_type": "Explore"}
    one.assistant("I delegate.", tool(name, **given))
    one.agent(
        lambda child: child.assistant("I search.", tool("Grep", pattern="x")).result("a.py").assistant("In a.py.")
    )
    return one.assistant("It is in a.py.").done()


@pytest.mark.parametrize(("version", "files"), [("1.0.128", 0), ("2.0.76", 1), ("2.1.42", 1), ("2.1.325", 1)])
def test_003_sub_agents_of_every_layout_have_prompt_work_and_report(version: str, files: int) -> None:
    made = opened(delegated(version))
    assert len(made.agent_files) == files
    (turn,) = build_brief(made).turns
    (agent,) = turn.agents
    assert (agent.kind, agent.task, agent.prompt) == ("Explore", "Find it", "Find where.")
    assert [each.text for each in agent.texts] == ["I search.", "In a.py."]
    assert [(each.tool, each.input["pattern"], each.state) for each in agent.calls] == [("Grep", "x", "ok")]
    assert (agent.report, agent.status, agent.source) == ("In a.py.", "completed", "transcript")
    assert agent.call_id == turn.calls[0].id
    assert [each.tool for each in turn.calls] == [turn.calls[0].tool]


def test_003_sub_agents_are_found_on_the_disk_in_every_layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import steno

    for version in ("1.0.128", "2.0.76", "2.1.325"):
        root = tmp_path / version
        for path, data in delegated(version).files().items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(data)
        monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(root))
        (turn,) = build_brief(steno.open("last")).turns
        assert [(each.prompt, each.report) for each in turn.agents] == [("Find where.", "In a.py.")]


def test_003_progress_tells_of_a_sub_agent_that_has_no_file() -> None:
    made = ContextFile().user("Go.")
    prompt = "Search for the cookie."
    made.assistant(call("t1", "Task", description="Search", prompt=prompt, subagent_type="Explore"))

    def noted(kind: str, uuid: str, *blocks: Any) -> None:
        message = {"type": kind, "uuid": uuid, "message": {"role": kind, "content": list(blocks)}}
        data = {"type": "agent_progress", "prompt": prompt, "agentId": "ab5e7cc"}
        made.progress("t1", {**data, "message": message})

    noted("user", "1", {"type": "text", "text": prompt})
    noted("assistant", "2", {"type": "text", "text": "I grep."}, call("s1", "Grep", pattern="c"))
    noted("assistant", "2", {"type": "text", "text": "I grep."}, call("s1", "Grep", pattern="c"))
    noted("user", "3", {"type": "tool_result", "tool_use_id": "s1", "content": "x"})
    failed = {"type": "tool_result", "tool_use_id": "s2", "content": "x", "is_error": True}
    noted("assistant", "4", call("s2", "Bash", command="ls"))
    noted("user", "5", failed)
    made.result("t1", [{"type": "text", "text": "In auth.py."}]).assistant("It is in auth.py.")
    (agent,) = made.brief().turns[0].agents
    assert (agent.source, agent.agent_id, agent.updates) == ("progress", "ab5e7cc", 6)
    assert (agent.prompt, agent.report) == (prompt, "In auth.py.")
    assert [each.text for each in agent.texts] == ["I grep."]
    assert [(each.id, each.state) for each in agent.calls] == [("s1", "ok"), ("s2", "failed")]
    written = as_markdown(made.brief())
    assert "6 progress records" in written
    assert "`pattern` `c`" in written


@pytest.mark.parametrize("tag", ["", "<tool-use-id>t1</tool-use-id>"])
def test_003_sub_agents_in_the_background_report_later_also_without_a_file(tag: str) -> None:
    asked = {"description": "Look", "prompt": "Find it.", "subagent_type": "Explore"}
    started = {"isAsync": True, "status": "async_launched", "agentId": "ab12", "prompt": "Find it."}
    made = ContextFile().user("Go.").assistant(call("t1", "Agent", run_in_background=True, **asked))
    launched = [{"type": "tool_result", "tool_use_id": "t1", "content": "Launched."}]
    made.user(launched, toolUseResult=started).assistant("Started.")
    (agent,) = found(made.brief())["turns"][0]["agents"]
    assert (agent["status"], agent["report"], agent["background"]) == ("unknown", "", True)
    name = "ab12" if not tag else "another"
    ended = f"<task-id>{name}</task-id>{tag}<status>killed</status><result>In a.py.</result>"
    made.user(f"<task-notification>{ended}</task-notification>").assistant("Good.")
    brief = found(made.brief())
    (agent,), (helper,) = brief["turns"][0]["agents"], brief["work"]["helpers"]
    assert (agent["status"], agent["report"]) == ("killed", "In a.py.")
    assert (helper["status"], helper["report"]) == ("killed", "In a.py.")
    assert "In a.py." in as_markdown(made.brief())


@pytest.mark.parametrize(("count", "steps"), [(7, 7), (-1, 0), ("many", 0), (None, 0)])
def test_003_sub_agents_without_a_file_have_the_number_of_calls_that_the_result_has(count: Any, steps: int) -> None:
    ended = {"status": "completed", "agentId": "ab12", "totalToolUseCount": count}
    done = [{"type": "tool_result", "tool_use_id": "t1", "content": "It is in a.py."}]
    made = ContextFile().user("Go.").assistant(call("t1", "Task", prompt="Find it."))
    brief = found(made.user(done, toolUseResult=ended).assistant("Good.").brief())
    (helper,) = brief["work"]["helpers"]
    assert (helper["steps"], helper["report"]) == (steps, "It is in a.py.")


def test_003_progress_is_told_where_the_call_is_named_otherwise_or_not_at_all() -> None:
    said = {"role": "assistant", "content": [{"type": "text", "text": "I grep."}]}
    data = {"type": "agent_progress", "prompt": "Find.", "agentId": "a1", "message": said}
    made = ContextFile().user("One.").assistant(call("t1", "Task", description="A", prompt="Find."))
    made.linked("progress", data=data, toolUseID="t1").result("t1", "Done.").assistant("1")
    made.user("Two.").progress("of-an-earlier-window", {**data, "agentId": "a2"}).assistant("2")
    first, second = made.brief().turns
    (own,), (left,) = first.agents, second.agents
    assert (own.task, own.agent_id, own.updates, own.report) == ("A", "a1", 1, "Done.")
    assert (left.call_id, left.agent_id, left.status) == ("of-an-earlier-window", "a2", "unknown")
    assert [each.text for each in (*own.texts, *left.texts)] == ["I grep."] * 2


def test_003_sub_agents_of_sub_agents_name_the_one_that_started_them() -> None:
    one = session(seed=5).user("Go.").assistant(tool("Agent", description="A", prompt="Do A"))

    def work(child: Made) -> object:
        child.assistant(tool("Agent", description="B", prompt="Do B"))
        return child.agent(lambda inner: inner.assistant("B done.")).assistant("A done.")

    (turn,) = build_brief(opened(one.agent(work).assistant("Done.").done())).turns
    first, second = turn.agents
    assert (first.task, first.parent_id, second.task) == ("A", "", "B")
    assert second.parent_id == first.agent_id != ""


# Snapshots


def test_003_snapshots_tell_which_files_changed_in_a_turn_and_which_before() -> None:
    made = ContextFile().snapshot({}, message="00000000-0000-4000-8000-000000000001")
    made.user("One.").assistant(call("t1", "Bash", command="gen"))
    made.snapshot({"gen/a.py": backup("aa", 1)}, update=True).result("t1").assistant("1")
    both = {"gen/a.py": backup("aa", 1), "b.py": backup("bb", 1, backupFileName=None)}
    made.assistant(call("t2", "Write", file_path=f"{PROJECT}/b.py", content="x"))
    made.snapshot(both, update=True).result("t2").assistant("Done.")
    made.user("Two.")
    made.snapshot({"gen/a.py": backup("aa", 2), "b.py": both["b.py"]}).assistant("2")
    made.beside("file-history-delta", messageId=made.last, snapshotMessageId="x")
    made.records[-1] |= {"trackingPath": "/etc/hosts", "backup": backup("cc", 1)}
    brief = made.brief()
    told = [
        [(each.path, each.version, each.change, each.existed, each.by_call) for each in turn.backups]
        for turn in brief.turns
    ]
    assert told == [
        [("gen/a.py", 1, "in_turn", True, False), ("b.py", 1, "in_turn", False, True)],
        [("gen/a.py", 2, "before_turn", True, False), ("/etc/hosts", 1, "in_turn", True, False)],
    ]
    assert brief.work.snapshot_files == ("gen/a.py", "/etc/hosts")
    assert brief.turns[0].work.snapshot_files == ("gen/a.py",)
    written = as_markdown(brief)
    assert "`gen/a.py` (version 1, not changed by a tool call)" in written
    assert "2 more files changed, known only from backups: `gen/a.py`" in written


def test_003_snapshots_may_hold_the_content_itself() -> None:
    made = ContextFile().user("One.")
    made.snapshot({f"{PROJECT}/main.py": "print(1)\n", "new.py": None}).assistant("1").user("Two.")
    made.snapshot({f"{PROJECT}/main.py": "print(1)\n", "new.py": None})
    made.snapshot({f"{PROJECT}/main.py": "print(2)\n", "odd.py": 7}).assistant("2")
    told = [[(each.path, each.change, each.existed, each.size) for each in turn.backups] for turn in made.brief().turns]
    assert told == [
        [("main.py", "in_turn", True, 9), ("new.py", "in_turn", False, None)],
        [("main.py", "before_turn", True, 9)],
    ]


def test_003_snapshots_of_earlier_work_and_of_abandoned_branches_are_no_changes() -> None:
    made = ContextFile().user("One.")
    before = {"backupTime": "2026-01-01T00:00:00.000Z"}
    files = {"a.py": backup("aa", 8, **before), "b.py": backup("bb", 1, **before)}
    made.snapshot({**files, "resumed.py": backup("rr", 3, backupTime="2026-02-14T13:00:02.000Z")})
    made.assistant("1")
    fork = made.last
    made.user("Wrong way.").assistant(call("t1", "Bash", command="x"))
    made.snapshot({"lost.py": backup("ll", 1)}, update=True).result("t1").assistant("Oh.")
    made.last = fork
    brief = made.user("Right way.").assistant("2").brief()
    assert [turn.text for turn in brief.turns] == ["One.", "Right way."]
    told = [(each.path, each.change) for turn in brief.turns for each in turn.backups]
    assert told == [("a.py", "earlier"), ("b.py", "earlier"), ("resumed.py", "earlier")]
    assert brief.work.snapshot_files == ()


def test_003_files_lists_what_only_snapshots_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = ContextFile()
    # Before the folder is known.
    made.snapshot({"early.py": backup("ee", 1)}, message="x")
    made.user("One.").assistant(call("t1", "Edit", file_path=f"{PROJECT}/a.py", old_string="a"))
    made.result("t1").assistant(call("t2", "Bash", command="gen"))
    made.snapshot({"a.py": backup("aa", 1), "gen.py": "x = 1\n"}, update=True)
    made.snapshot({"a.py": backup("aa", 1), "gen.py": "x = 2\n"}).result("t2").assistant("Done.")
    path = tmp_path / "root" / "projects" / "-home-yu-projects-foo" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    data = made.data()
    path.write_bytes(data[: data.index(b'"gen.py"')])
    monkeypatch.setenv("STENO_HOME", str(tmp_path / "steno"))
    root = str(tmp_path / "root")
    open_index(root).close()
    path.write_bytes(data)
    with open_index(root) as index:
        rows = {each.path: each for each in list_touched_files(index.connection)}
        assert {name: each.source for name, each in rows.items()} == {
            f"{PROJECT}/a.py": "calls",
            f"{PROJECT}/gen.py": "snapshot",
            f"{PROJECT}/early.py": "snapshot",
        }
        gen = rows[f"{PROJECT}/gen.py"]
        assert (gen.edits, gen.backups, gen.sessions) == (0, 2, 1)
        changed = TouchedFilter(changed=True, words="gen")
        assert [each.path for each in list_touched_files(index.connection, changed, limit=1)] == [gen.path]
        assert list_touched_files(index.connection, TouchedFilter(project="/elsewhere")) == []
        assert sort_touched(rows.values(), "path")[0].path == f"{PROJECT}/a.py"
        mine = {each.path: each for each in files_of_session(index.connection, SESSION)}
        assert (mine[gen.path].source, mine[gen.path].turns) == ("snapshot", [1])
        told = history(index.connection, gen.path)
        assert told is not None
        assert [(each.known, each.text) for each in told.versions] == [("exact", "x = 1\n"), ("exact", "x = 2\n")]
        lost = history(index.connection, f"{PROJECT}/early.py")
        assert lost is not None
        assert [each.known for each in lost.versions] == ["unknown"]


# Compactions


def test_003_microcompact_savings_are_told() -> None:
    made = ContextFile().user("Go.").assistant(call("t1", "Bash", command="x")).result("t1")
    ids = ["toolu_01", "toolu_02"]
    made.microcompact(trigger="auto", preTokens=150_000, tokensSaved=45_000, compactedToolIds=ids)
    made.microcompact(trigger="auto", clearedAttachmentUUIDs=["a"], tokensSaved="many")
    applied = {"type": "clear_tool_uses_20250919", "cleared_tool_uses": 8}
    applied["cleared_input_tokens"] = 50_000
    made.assistant("Done.", message={"context_management": {"applied_edits": [applied]}})
    brief = made.brief()
    (turn,) = brief.turns
    first, second, third = turn.compactions
    assert (first.kind, first.trigger, first.pre_tokens) == ("micro", "auto", 150_000)
    assert (first.tokens_saved, first.post_tokens) == (45_000, 105_000)
    assert first.compacted_tool_ids == tuple(ids)
    assert (second.tokens_saved, second.attachments_removed) == (None, 1)
    assert (third.trigger, third.tokens_saved, third.results_removed) == ("api", 50_000, 8)
    assert "150.0k tokens before, 45.0k tokens saved, 2 tool results removed" in as_markdown(brief)


def _covers(brief: Brief, prompts: list[str]) -> None:
    assert [turn.text for turn in brief.turns] == prompts
    assert [each.path for each in brief.work.files] == ["early.py"]
    assert sum(each.kind == "full" for turn in brief.turns for each in turn.compactions) == 1


def _began() -> ContextFile:
    made = ContextFile().user("One.")
    made.assistant("Text one.", call("t1", "Write", file_path=f"{PROJECT}/early.py", content="x"))
    return made.result("t1").assistant("Done one.")


def test_003_compacted_sessions_are_told_whole_in_the_form_of_the_client() -> None:
    made = _began()
    end = made.last
    made.last = None
    metadata = {"trigger": "auto", "preTokens": 150_000, "postTokens": 10_000}
    made.linked("system", subtype="compact_boundary", logicalParentUuid=end, compactMetadata=metadata)
    made.user("They spoke.", isCompactSummary=True, isVisibleInTranscriptOnly=True)
    brief = made.user("Two.").assistant("Done two.").brief()
    _covers(brief, ["One.", "Two."])
    (seam,) = brief.turns[1].compactions
    assert (seam.summary, seam.tokens_saved, seam.trigger) == ("They spoke.", 140_000, "auto")
    written = as_markdown(brief)
    assert written.index("Text one.") < written.index("They spoke.") < written.index("Done two.")


def test_003_compacted_sessions_are_told_whole_in_the_form_of_001() -> None:
    made = _began()
    end = made.last
    made.beside("summary", summary="They spoke.", leafUuid=end)
    made.linked("system", subtype="compact_boundary", logicalParentUuid=end, parentUuid=None)
    made.last = None
    brief = made.user("Two.").assistant("Done two.").brief()
    _covers(brief, ["One.", "Two."])
    assert brief.turns[1].compactions[0].summary == "They spoke."


def test_003_compacted_sessions_are_told_whole_in_the_form_of_steno(tmp_path: Path) -> None:
    script = ScriptedResponder().on("Summarize", "They spoke of apples.").otherwise("Yes.")
    stage = Stage(tmp_path, script)

    async def act(agent: Agent) -> None:
        await agent.run_turn("Tell me of apples.")
        await agent.run_turn("And now?")
        assert await ContextCompactor().compact(agent, "manual", "")
        await agent.run_turn("Go on.")

    stage.play(act)
    brief = build_brief(Session(load(BytesSource(stage.data)), name=SESSION))
    # The last turn is said again below the summary, and is told once all the same.
    prompts = list(dict.fromkeys(turn.text for turn in brief.turns))
    assert prompts == ["Tell me of apples.", "And now?", "Go on."]
    assert [each.text for turn in brief.turns for each in turn.texts] == ["Yes."] * 3
    (seam,) = [each for turn in brief.turns for each in turn.compactions]
    assert (seam.kind, "They spoke of apples." in seam.summary) == ("full", True)


def test_003_compacted_in_the_middle_of_a_turn_it_is_told_in_the_middle() -> None:
    made = _began()
    made.assistant(call("t2", "Bash", command="make")).result("t2")
    made.microcompact(trigger="auto", preTokens=9_000, tokensSaved=4_000)
    brief = made.assistant("After.").brief()
    (turn,) = brief.turns
    (seam,) = turn.compactions
    assert seam.order == turn.texts[-1].order == 4
    written = as_markdown(brief)
    assert written.index("`make`") < written.index("4.0k tokens") < written.index("After.")


# The queue


def test_003_queue_operations_stand_in_the_turn_they_belong_to() -> None:
    done = "<task-id>b1</task-id><status>completed</status>"
    made = ContextFile().queue("enqueue", "One.").queue("dequeue").user("One.")
    made.assistant(call("t1", "Bash", command="x")).queue("enqueue", "Also this,\nand that.")
    made.result("t1").queue("remove").queue("enqueue", done).queue("complete", done)
    made.assistant("Done.").queue("enqueue", "Two.").queue("dequeue")
    brief = made.user("Two.").assistant("Done two.").brief()
    told = [[(each.operation, each.content) for each in turn.queue] for turn in brief.turns]
    assert told == [
        [
            ("enqueue", "One."),
            ("dequeue", ""),
            ("enqueue", "Also this,\nand that."),
            ("remove", ""),
            ("enqueue", done),
            ("complete", done),
        ],
        [("enqueue", "Two."), ("dequeue", "")],
    ]
    assert brief.turns[0].meanwhile == ("Also this,\nand that.",)
    assert f"completed `{done}`" in as_markdown(brief)
    long = ContextFile().user("One.").queue("enqueue", "word " * 100).assistant("Done.").brief()
    assert long.turns[0].queue[0].size == 500
    for budget in (None, 2_000):
        assert "[500 characters]" in as_markdown(long, budget)


def test_003_queue_lets_a_prompt_overtake_a_notification() -> None:
    told = "<task-notification><task-id>b1</task-id></task-notification>"
    made = ContextFile().user("One.").assistant("At work.").queue("enqueue", told)
    made.queue("enqueue", "Two.").assistant("Done.").queue("dequeue").user("Two.").assistant("Done.")
    brief = made.queue("dequeue").user(told).assistant("Noted.").brief()
    operations = [[each.operation for each in turn.queue] for turn in brief.turns]
    assert operations == [["enqueue", "enqueue"], ["dequeue"], ["dequeue"]]


# Forms


def everything(words: str) -> ContextFile:
    """Return a session with some words wherever a brief has room for them."""
    made = ContextFile().user(f"Ask {words}").assistant(f"Text {words}")
    made.assistant(call("t1", "Task", description=words, prompt=f"Do {words}", **{words[:60]: words}))
    said = {"role": "assistant", "content": [{"type": "text", "text": f"Progress {words}"}]}
    data = {"type": "agent_progress", "agentId": words, "message": {"message": said}}
    made.progress("t1", data).result("t1", f"Report {words}")
    made.snapshot({f"src/{words}": backup("aa", 1)}, update=True)
    made.microcompact(trigger=words, preTokens=9, tokensSaved=3, compactedToolIds=[words])
    made.queue("enqueue", words).queue(words, words)
    end = made.last
    made.linked("system", subtype="compact_boundary", parentUuid=None, logicalParentUuid=end)
    return made.user(words, isCompactSummary=True).user("Two.").assistant(f"Done {words}")


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("budget", [None, 2_000])
def test_003_secrets_are_masked_in_everything_a_turn_holds(budget: int | None, *, full: bool) -> None:
    brief = everything(f"key {_KEY} end").brief(full=full)
    assert _KEY in json.dumps(as_json(brief, redact=False))
    assert _KEY[:12] not in json.dumps(as_json(brief, budget, full=full))
    assert _KEY[:12] not in as_markdown(brief, budget, full=full)


def test_003_a_secret_at_the_cut_of_a_parameter_does_not_lose_its_end() -> None:
    made = ContextFile().user("Go.")
    made.assistant(call("t1", "Write", file_path="a", content="x " * 990 + _KEY + " y" * 9_000))
    made.assistant(call("t2", "Login", **dict.fromkeys(["password"], "hunter2")))
    written = json.dumps(as_json(made.brief()))
    assert _KEY[:6] not in written
    assert "hunter2" not in written


def test_003_a_budget_says_exactly_what_it_left_out() -> None:
    made = ContextFile()
    for number in range(12):
        made.user(f"Ask {number} " + "word " * 20)
        made.assistant("Thought " * 30, call(f"t{number}", "Bash", command=f"make {number}"))
        made.result(f"t{number}").assistant("Answer " * 30)
    brief = made.brief()
    (cut,) = as_json(brief, 3_000)["briefs"]
    left = cut["omitted"]
    assert left["turns"] == 12 - len(cut["turns"])
    assert left["calls"] == 12 - sum(len(turn["calls"]) for turn in cut["turns"])
    texts = sum(not each["final"] for turn in cut["turns"] for each in turn["texts"])
    assert left["texts"] == 12 - texts
    written = as_markdown(brief, 700)
    assert written.count("turns,") or written.count("turn,")
    assert "texts" in written.rpartition("Omitted from this session")[2]
    assert "calls" in written.rpartition("Omitted from this session")[2]
    (whole,) = as_json(brief)["briefs"]
    assert whole["omitted"] == {}
    assert sum(len(turn["texts"]) for turn in whole["turns"]) == 24
