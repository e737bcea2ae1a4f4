"""An editor drives the engine: the official client against `steno acp`, over real pipes."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from acp import embedded_text_resource, image_block, resource_block, resource_link_block
from acp.exceptions import RequestError
from acp.schema import EnvVariable, McpServerStdio
from tests.acp.editor import Desk, desk, program

from steno.agent.context.token_usage import TurnLimits
from steno.llm.testserver.responders import ReleaseEvent, Reply, ReplyBlock, error_reply, text, thinking, tool
from steno.llm.testserver.scripted_responder import ScriptedResponder
from steno.store.session_lock import SessionLock, live_writer

_DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def streamed(*pieces: str | ReleaseEvent) -> ReplyBlock:
    words = "".join(piece for piece in pieces if isinstance(piece, str))
    return ReplyBlock({"type": "text", "text": words}, tuple(pieces))


def at(opened: AbstractAsyncContextManager[Desk], act: Callable[[Desk], Awaitable[Any]]) -> None:
    """Let something happen at a desk; whatever it was, it must leave things in order."""

    async def together() -> None:
        async with opened as made:
            await act(made)
            made.proves()

    asyncio.run(together())


def test_a_task_from_beginning_to_end(tmp_path: Path) -> None:
    edit = tool("Edit", file_path="a.txt", old_string="one", new_string="two", tool_id="toolu_edit")
    look = tool("Read", file_path="a.txt", tool_id="toolu_read")
    todo = {"content": "mend it", "status": "in_progress", "activeForm": "mending"}
    script = ScriptedResponder().on("mend", [thinking("I look first."), text("Looking."), look])
    script.then(tool("TodoWrite", todos=[todo], tool_id="toolu_todo")).then(edit).then("It is mended.")

    async def act(here: Desk) -> None:
        (here.project / "a.txt").write_text("one\n")
        session = await here.begin()
        here.editor.answers = ["once"]
        assert await here.say(session, "please mend it") == "end_turn"
        editor = here.editor
        assert editor.text() == "Looking.It is mended."
        assert editor.text("agent_thought_chunk") == "I look first."
        read = editor.call("toolu_read")
        assert (read["kind"], read["title"]) == ("read", "Read a.txt")
        assert read["locations"] == [{"path": str(here.project / "a.txt")}]
        assert read["states"] == ["pending", "in_progress", "completed"]
        assert "one" in read["content"][0]["content"]["text"]
        mended = editor.call("toolu_edit")
        assert (mended["kind"], mended["states"][-1]) == ("edit", "completed")
        (diff,) = mended["content"]
        assert (diff["type"], diff["old_text"], diff["new_text"]) == ("diff", "one", "two")
        assert diff["path"] == str(here.project / "a.txt")
        (plan,) = editor.of("plan")
        assert [(each.content, each.status) for each in plan.entries] == [("mend it", "in_progress")]
        (asked, options) = editor.asked[0]
        assert asked.tool_call_id == "toolu_edit"
        assert [each.kind for each in options] == ["allow_once", "allow_always", "allow_always", "reject_once"]
        assert (here.project / "a.txt").read_text() == "two\n"
        assert [path.stem for path in here.files] == [session]

    at(program(tmp_path, script), act)


def test_what_is_rejected_is_not_done_and_what_is_always_allowed_is_kept(tmp_path: Path) -> None:
    script = ScriptedResponder().on("first", tool("Bash", command="touch no", tool_id="toolu_no")).then("Not then.")
    script.on("second", tool("Bash", command="touch yes", tool_id="toolu_yes")).then("Done.")
    script.on("third", tool("Bash", command="touch yes", tool_id="toolu_more")).then("Again.")

    async def act(here: Desk) -> None:
        session = await here.begin()
        here.editor.answers = ["no", "local"]
        assert await here.say(session, "first") == "end_turn"
        assert here.editor.call("toolu_no")["states"] == ["pending", "failed"]
        assert not (here.project / "no").exists()
        assert "The user rejected this tool call." in str(here.server.requests[-1].body["messages"][-1])
        assert await here.say(session, "second") == "end_turn"
        assert here.editor.call("toolu_yes")["kind"] == "execute"
        assert (here.project / "yes").exists()
        kept = json.loads((here.project / ".claude" / "settings.local.json").read_text())
        assert kept["permissions"]["allow"] == ["Bash(touch yes)"]
        assert await here.say(session, "third") == "end_turn"
        assert len(here.editor.asked) == 2

    at(desk(tmp_path, script), act)


def test_breaking_in_while_it_answers_and_while_it_asks(tmp_path: Path) -> None:
    gate = ReleaseEvent()
    script = ScriptedResponder().on("tell", Reply(content=(streamed("First ", gate, "last."),)))
    script.on("ask", tool("Bash", command="touch no", tool_id="toolu_no")).on("on", "Going on.")

    async def act(here: Desk) -> None:
        session = await here.begin()
        saying = asyncio.ensure_future(here.say(session, "tell me"))
        await here.editor.until(lambda: "First" in here.editor.text())
        await here.conn.cancel(session_id=session)
        assert await saying == "cancelled"
        gate.release()
        here.editor.answers = [""]
        saying = asyncio.ensure_future(here.say(session, "ask me"))
        await here.editor.until(lambda: bool(here.editor.asked))
        await here.conn.cancel(session_id=session)
        here.editor.leave()
        assert await saying == "cancelled"
        assert here.editor.call("toolu_no")["states"][-1] == "failed"
        assert await here.say(session, "go on") == "end_turn"
        assert here.editor.text().endswith("Going on.")

    at(desk(tmp_path, script), act)


def test_a_session_is_loaded_with_its_past_and_goes_on(tmp_path: Path) -> None:
    script = ScriptedResponder().on("look", [text("I look."), tool("Glob", pattern="*", tool_id="toolu_glob")])
    script.then("There is nothing.").on("more", "That was all.")

    async def first(here: Desk) -> None:
        session = await here.begin()
        await here.say(session, "please look")
        (tmp_path / "id").write_text(session)

    async def second(here: Desk) -> None:
        session = (tmp_path / "id").read_text()
        listed = await here.conn.list_sessions(cwd=str(here.project))
        assert [(each.session_id, each.title) for each in listed.sessions] == [(session, "please look")]
        loaded = await here.conn.load_session(cwd=str(here.project), session_id=session, mcp_servers=[])
        assert loaded.modes.current_mode_id == "default"
        editor = here.editor
        kinds = [update.session_update for _, update in editor.updates]
        assert kinds[:5] == [
            "user_message_chunk",
            "agent_message_chunk",
            "tool_call",
            "tool_call_update",
            "agent_message_chunk",
        ]
        assert editor.text("user_message_chunk") == "please look"
        assert editor.text() == "I look.There is nothing."
        assert editor.call("toolu_glob")["status"] == "completed"
        assert await here.say(session, "anything more?") == "end_turn"
        assert "There is nothing." in str(here.server.requests[-1].body["messages"])
        assert len(here.files) == 1

    at(desk(tmp_path, script), first)
    at(desk(tmp_path, script), second)


def test_modes(tmp_path: Path) -> None:
    plan = tool("ExitPlanMode", plan="First this.", tool_id="toolu_plan")
    write = tool("Write", file_path="b.txt", content="b\n", tool_id="toolu_write")
    script = ScriptedResponder().on("plan", plan).then(write).then("Done.")
    script.on("again", tool("Bash", command="touch c", tool_id="toolu_touch")).then("Refused.")

    async def act(here: Desk) -> None:
        made = await here.conn.new_session(cwd=str(here.project), mcp_servers=[])
        session = made.session_id
        assert made.modes.current_mode_id == "plan"
        names = [each.id for each in made.modes.available_modes]
        assert sorted(names) == sorted(["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"])
        here.editor.answers = ["acceptEdits"]
        assert await here.say(session, "plan it") == "end_turn"
        (asked, _) = here.editor.asked[0]
        assert (asked.tool_call_id, asked.kind) == ("toolu_plan", "switch_mode")
        assert "First this." in asked.content[0].content.text
        assert [each.current_mode_id for each in here.editor.of("current_mode_update")] == ["acceptEdits"]
        assert (here.project / "b.txt").read_text() == "b\n"
        await here.conn.set_session_mode(session_id=session, mode_id="dontAsk")
        assert await here.say(session, "again") == "end_turn"
        assert not (here.project / "c").exists()
        assert len(here.editor.asked) == 1
        with pytest.raises(RequestError, match="unknown mode 'yolo'"):
            await here.conn.set_session_mode(session_id=session, mode_id="yolo")

    at(desk(tmp_path, script, mode="plan"), act)


def test_what_a_prompt_may_hold(tmp_path: Path) -> None:
    script = ScriptedResponder().otherwise("I see.")

    async def act(here: Desk) -> None:
        session = await here.begin()
        (here.project / "my notes.txt").write_text("from the disk")
        link = resource_link_block("notes", (here.project / "my notes.txt").as_uri())
        shown = resource_block(embedded_text_resource("file:///x/buffer.py", "unsaved = 1"))
        blocks = ["look at ", link, " and ", shown, image_block(_DOT, "image/png")]
        assert await here.say(session, *blocks) == "end_turn"
        sent = here.server.requests[-1].body["messages"][-1]["content"]
        words = " ".join(each.get("text", "") for each in sent)
        assert '@"my notes.txt"' in words
        assert "from the disk" in words
        assert "unsaved = 1" in words
        assert [each["source"]["data"] for each in sent if each["type"] == "image"] == [_DOT]
        with pytest.raises(RequestError, match="Cannot show"):
            await here.say(session, image_block("bm9uZQ==", "image/png"))
        with pytest.raises(RequestError, match="the prompt is empty"):
            await here.say(session, " ")

    at(desk(tmp_path, script), act)


def test_commands_are_offered_and_called(tmp_path: Path) -> None:
    script = ScriptedResponder().on("Greet Ada", "Hello, Ada.")
    folder = tmp_path / "home" / ".claude" / "commands"
    folder.mkdir(parents=True)
    (folder / "greet.md").write_text("---\ndescription: says hello\n---\nGreet $ARGUMENTS")

    async def act(here: Desk) -> None:
        session = await here.begin()
        await here.editor.until(lambda: bool(here.editor.of("available_commands_update")))
        (offered,) = here.editor.of("available_commands_update")
        known = {each.name: each.description for each in offered.available_commands}
        assert known["greet"] == "says hello"
        assert {"compact", "context", "cost"} <= known.keys()
        assert await here.say(session, "/greet Ada") == "end_turn"
        assert here.editor.text() == "Hello, Ada."
        assert await here.say(session, "/context") == "end_turn"
        assert "window" in here.editor.text() or "tokens" in here.editor.text()
        assert await here.say(session, "/clear") == "end_turn"
        assert "Start a new thread" in here.editor.text()

    at(desk(tmp_path, script), act)


def test_why_a_turn_stops(tmp_path: Path) -> None:
    script = ScriptedResponder().on("long", Reply(content=(text("…"),), stop_reason="max_tokens"))
    script.on("length limit", Reply(content=(text("…"),), stop_reason="max_tokens"))
    script.on("never", Reply(content=(text("No."),), stop_reason="refusal"))
    script.on("work", tool("Glob", pattern="*")).then(tool("Glob", pattern="*"))
    script.then(tool("Glob", pattern="*"))
    script.on("broken", error_reply(400, "that is too much"))

    async def act(here: Desk) -> None:
        session = await here.begin()
        assert await here.say(session, "never") == "refusal"
        assert await here.say(session, "work") == "max_turn_requests"
        with pytest.raises(RequestError, match="that is too much") as failed:
            await here.say(session, "broken")
        assert failed.value.code == -32603

    async def cut(here: Desk) -> None:
        session = await here.begin()
        assert await here.say(session, "long") == "max_tokens"

    at(desk(tmp_path, script, limits=TurnLimits(requests=2)), act)
    at(desk(tmp_path, script), cut)


def test_without_a_key_or_with_a_wrong_one_it_says_so(tmp_path: Path) -> None:
    async def none(here: Desk) -> None:
        with pytest.raises(RequestError, match="Set ANTHROPIC_API_KEY") as failed:
            await here.begin()
        assert failed.value.code == -32000
        with pytest.raises(RequestError, match="Set ANTHROPIC_API_KEY"):
            await here.conn.authenticate(method_id="environment")

    async def wrong(here: Desk) -> None:
        session = await here.begin()
        with pytest.raises(RequestError, match="API Error") as failed:
            await here.say(session, "hello")
        assert failed.value.code == -32000
        here.server.refused.clear()

    at(program(tmp_path, ScriptedResponder(), ANTHROPIC_API_KEY=""), none)
    at(desk(tmp_path, ScriptedResponder(), key="another-key-of-nobody"), wrong)


def test_several_sessions_at_once(tmp_path: Path) -> None:
    gate = ReleaseEvent()
    script = ScriptedResponder().on("slow", Reply(content=(streamed("Slow ", gate, "done."),)))
    script.on("quick", "Quick.")

    async def act(here: Desk) -> None:
        one, two = await here.begin(), await here.begin()
        saying = asyncio.ensure_future(here.say(one, "slow"))
        await here.editor.until(lambda: "Slow" in here.editor.text(session_id=one))
        with pytest.raises(RequestError, match="a turn is running"):
            await here.say(one, "quick")
        assert await here.say(two, "quick") == "end_turn"
        assert here.editor.text(session_id=two) == "Quick."
        gate.release()
        assert await saying == "end_turn"
        assert here.editor.text(session_id=one) == "Slow done."
        assert {path.stem for path in here.files} == {one, two}
        assert all(live_writer(str(path)) is not None for path in here.files)

    at(desk(tmp_path, script), act)


def test_a_folder_with_files_of_its_own_is_asked_about_once(tmp_path: Path) -> None:
    script = ScriptedResponder().otherwise("Yes.")

    async def act(here: Desk) -> None:
        (here.project / "CLAUDE.md").write_text("Always say yes.")
        session = await here.begin()
        here.editor.answers = ["yes"]
        assert await here.say(session, "may I?") == "end_turn"
        (asked, _) = here.editor.asked[0]
        assert "Do you trust" in asked.title
        assert "CLAUDE.md" in asked.content[0].content.text
        assert "Always say yes." in str(here.server.requests[-1].body["system"])
        other = await here.begin()
        assert await here.say(other, "and now?") == "end_turn"
        assert len(here.editor.asked) == 1

    at(desk(tmp_path, script), act)


def test_servers_that_the_editor_names_are_used(tmp_path: Path) -> None:
    script = ScriptedResponder().on("shout", tool("mcp__loud__shout", words="hi", tool_id="toolu_loud"))
    script.then("Shouted.")
    loud = tmp_path / "loud.py"
    loud.write_text(
        "import os\n"
        "from mcp.server import MCPServer\n"
        "server = MCPServer('loud')\n"
        "@server.tool()\n"
        "def shout(words: str) -> str:\n"
        "    return words.upper() + os.environ['MARK']\n"
        "server.run('stdio')\n"
    )
    server = McpServerStdio(
        name="loud", command=sys.executable, args=[str(loud)], env=[EnvVariable(name="MARK", value="!")]
    )

    async def act(here: Desk) -> None:
        made = await here.conn.new_session(cwd=str(here.project), mcp_servers=[server])
        here.editor.answers = ["once"]
        assert await here.say(made.session_id, "shout") == "end_turn"
        assert here.editor.call("toolu_loud")["title"] == "loud.shout hi"
        assert "HI!" in str(here.editor.call("toolu_loud")["content"])

    at(desk(tmp_path, script), act)


def test_questions_are_put_one_by_one_and_what_a_sub_agent_does_is_seen(tmp_path: Path) -> None:
    options = [{"label": "Tea", "description": "hot"}, {"label": "Milk", "description": "cold"}]
    question = {"question": "Which?", "header": "Drink", "options": options, "multiSelect": False}
    script = ScriptedResponder().on("drink", tool("AskUserQuestion", questions=[question], tool_id="toolu_q"))
    script.then("Milk it is.")
    script.on("Count them", tool("Glob", pattern="*.none", tool_id="toolu_inner")).then("None.")
    task = {"description": "count", "prompt": "Count them.", "subagent_type": "Explore"}
    script.on("ask somebody", tool("Agent", tool_id="toolu_agent", **task)).then("There are none.")

    async def act(here: Desk) -> None:
        session = await here.begin()
        here.editor.answers = ["1"]
        assert await here.say(session, "drink") == "end_turn"
        assert [each.name for each in here.editor.asked[0][1]] == ["Tea", "Milk", "Skip"]
        assert '"Which?"="Milk"' in str(here.server.requests[-1].body["messages"][-1])
        assert await here.say(session, "ask somebody") == "end_turn"
        assert here.editor.call("toolu_inner")["states"][-1] == "completed"
        assert "None." in str(here.editor.call("toolu_agent")["content"])
        assert here.editor.text() == "Milk it is.There are none."

    at(desk(tmp_path, script), act)


def test_what_a_command_prints_is_seen_while_it_runs(tmp_path: Path) -> None:
    wait = "mkfifo go; echo begun; cat go; echo '```'"
    script = ScriptedResponder().on("run", tool("Bash", command=wait, tool_id="toolu_run")).then("Done.")

    async def act(here: Desk) -> None:
        session = await here.begin()
        saying = asyncio.ensure_future(here.say(session, "run"))
        await here.editor.until(lambda: "begun" in str(here.editor.call("toolu_run").get("content")))
        assert here.editor.call("toolu_run")["states"] == ["pending", "in_progress"]
        await asyncio.to_thread((here.project / "go").write_text, "end\n")
        assert await saying == "end_turn"
        shown = here.editor.call("toolu_run")["content"][0]["content"]["text"]
        assert shown == "````\nbegun\nend\n```\n````"

    at(desk(tmp_path, script, mode="bypassPermissions"), act)


def test_an_editor_that_goes_while_it_is_asked_leaves_a_sound_session(tmp_path: Path) -> None:
    script = ScriptedResponder().on("ask", tool("Bash", command="touch no", tool_id="toolu_no"))

    async def act(here: Desk) -> None:
        session = await here.begin()
        here.editor.answers = [""]
        saying = asyncio.ensure_future(here.say(session, "ask me"))
        await here.editor.until(lambda: bool(here.editor.asked))
        here.process.stdin.close()
        assert await here.process.wait() == 0
        # Whether there was still time to say so does not matter: nobody listens.
        await asyncio.gather(saying, return_exceptions=True)
        here.editor.leave()
        (path,) = here.files
        assert b"does not want" not in path.read_bytes()
        assert b"[Request interrupted by user for tool use]" in path.read_bytes()
        assert list((here.config / "sessions").iterdir()) == []

    at(program(tmp_path, script), act)


def test_bad_input_is_answered_and_the_talk_goes_on(tmp_path: Path) -> None:
    script = ScriptedResponder().otherwise("Still here.")

    async def act(here: Desk) -> None:
        session = await here.begin()
        for line in (b"{", b"[]", b"\xff\xfe", b'{"id":[1],"result":1}', b'{"id":1,"method":5}', b""):
            here.process.stdin.write(line + b"\n")
        await here.process.stdin.drain()
        with pytest.raises(RequestError, match="Invalid params"):
            await here.conn._conn.send_request("session/prompt", {"sessionId": session})
        with pytest.raises(RequestError, match="Method not found"):
            await here.conn._conn.send_request("session/dance", {})
        with pytest.raises(RequestError, match="is not a directory"):
            await here.conn.new_session(cwd="nowhere", mcp_servers=[])
        with pytest.raises(RequestError, match="no session matches"):
            await here.conn.load_session(cwd=str(here.project), session_id="../../etc/passwd", mcp_servers=[])
        with pytest.raises(RequestError, match="session 'x' is not open"):
            await here.say("x", "hello")
        await here.conn.cancel(session_id="x")
        assert await here.say(session, "hello") == "end_turn"
        assert here.editor.text() == "Still here."

    at(program(tmp_path, script), act)


def test_a_session_that_another_process_has_is_not_loaded(tmp_path: Path) -> None:
    script = ScriptedResponder().otherwise("Yes.")

    async def first(here: Desk) -> None:
        session = await here.begin()
        await here.say(session, "hello")
        (tmp_path / "id").write_text(session)

    async def second(here: Desk) -> None:
        session = (tmp_path / "id").read_text()
        (path,) = here.files
        before = path.read_bytes()

        async def load() -> None:
            await here.conn.load_session(cwd=str(here.project), session_id=session, mcp_servers=[])

        with SessionLock.acquire(str(path)), pytest.raises(RequestError, match="is in use by"):
            await load()
        assert path.read_bytes() == before
        await load()
        assert await here.say(session, "more") == "end_turn"
        # Loaded once more it is the same one, and goes on.
        await load()
        assert await here.say(session, "even more") == "end_turn"

    at(desk(tmp_path, script), first)
    at(desk(tmp_path, script), second)


def test_a_session_that_another_program_writes_to_stops_and_is_loaded_again(tmp_path: Path) -> None:
    async def act(here: Desk) -> None:
        session = await here.begin()
        await here.say(session, "hello")
        (path,) = here.files
        foreign = b'{"type":"custom-title","customTitle":"x","sessionId":"y"}\n'
        await asyncio.to_thread(path.write_bytes, path.read_bytes() + foreign)
        with pytest.raises(RequestError, match="another program changed"):
            await here.say(session, "more")
        assert path.read_bytes().endswith(foreign)
        await here.conn.load_session(cwd=str(here.project), session_id=session, mcp_servers=[])
        assert await here.say(session, "more") == "end_turn"

    at(desk(tmp_path, ScriptedResponder().otherwise("Yes.")), act)
