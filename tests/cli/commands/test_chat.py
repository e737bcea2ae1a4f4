"""`steno chat -p` as people and programs call it, against the strict server."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steno.check.checkup import check
from steno.format.source import BytesSource
from steno.llm.testserver.responders import ErrorReply, Reply, text, tool
from steno.llm.testserver.responders import ReleaseEvent as Door
from steno.llm.testserver.scripted_responder import ScriptedResponder
from steno.llm.testserver.server import Server, run_server_in_thread

KEY = "canary-key-of-nobody"


class Chat:
    """A project, a home, a server, and calls of the command."""

    def __init__(self, folder: Path, server: Server) -> None:
        self.project = folder / "project"
        self.project.mkdir()
        self.home = folder / "home"
        self.server = server

    @property
    def env(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "CLAUDE_CONFIG_DIR": str(self.home / ".claude"),
            "STENO_HOME": str(self.home / "steno"),
            "ANTHROPIC_BASE_URL": self.server.url,
            "ANTHROPIC_API_KEY": KEY,
        }

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "steno", "chat", *arguments]

    def __call__(self, *arguments: str, given: str = "", code: int = 0, env: dict[str, str] | None = None) -> str:
        ran = subprocess.run(
            self.command(*arguments),
            input=given,
            capture_output=True,
            text=True,
            cwd=self.project,
            env=self.env if env is None else env,
            check=False,
        )
        assert "Traceback" not in ran.stderr
        assert ran.returncode == code, ran.stderr
        self.said = ran.stderr
        return ran.stdout

    def lines(self, *arguments: str, **more: Any) -> list[dict[str, Any]]:
        out = self("-p", *arguments, "--output-format", "stream-json", **more)
        return [json.loads(line) for line in out.splitlines()]

    @property
    def files(self) -> list[Path]:
        return sorted((self.home / ".claude" / "projects").glob("*/*.jsonl"))

    def check(self) -> None:
        assert list(self.server.refused) == []
        for path in self.files:
            found = check(BytesSource(path.read_bytes()), name=path.stem).findings
            assert [each.id for each in found if each.severity != "info"] == []
        for path in self.home.rglob("*"):
            assert not path.is_file() or KEY.encode() not in path.read_bytes()


@pytest.fixture
def script() -> ScriptedResponder:
    return ScriptedResponder().otherwise("Yes.")


@pytest.fixture
def chat(tmp_path: Path, script: ScriptedResponder) -> Iterator[Chat]:
    with run_server_in_thread(script, key=KEY) as server:
        yield Chat(tmp_path, server)


def test_the_answer_is_printed(chat: Chat, script: ScriptedResponder) -> None:
    script.on("hello", "Good day.")
    assert chat("-p", "hello") == "Good day.\n"
    chat.check()


def test_what_is_piped_in_is_part_of_the_prompt(chat: Chat) -> None:
    chat("-p", "What is this?", given="a,b\n1,2\n")
    (sent,) = [each.body["messages"][0]["content"][0]["text"] for each in chat.server.requests]
    assert sent == "What is this?\n\na,b\n1,2"


def test_a_real_task_with_real_tools(chat: Chat, script: ScriptedResponder) -> None:
    path = chat.project / "a.py"
    path.write_text("print(1)\n")
    script.on("fix", [text("I look."), tool("Read", file_path=str(path))])
    script.then(tool("Edit", file_path=str(path), old_string="1", new_string="2"))
    script.then(tool("Bash", command="cat a.py")).then("Fixed.")
    assert chat("-p", "fix it", "--permission-mode", "acceptEdits") == "Fixed.\n"
    assert path.read_text() == "print(2)\n"
    assert b'"structuredPatch"' in chat.files[0].read_bytes()
    chat.check()


def test_nobody_is_asked_so_nothing_happens_that_is_not_allowed(chat: Chat, script: ScriptedResponder) -> None:
    script.on("go", tool("Bash", command="touch made")).then("A pity.")
    (result,) = [each for each in chat.lines("go") if each["type"] == "result"]
    assert not (chat.project / "made").exists()
    assert [each["tool_name"] for each in result["permission_denials"]] == ["Bash"]
    assert chat("-p", "go", "--allowedTools", "Bash(touch:*),Read") == "A pity.\n"
    assert (chat.project / "made").exists()
    chat.check()


def test_a_line_per_event_and_a_result_at_the_end(chat: Chat, script: ScriptedResponder) -> None:
    script.on("go", [text("I look."), tool("Glob", pattern="*")]).then("Done.")
    lines = chat.lines("go", "--include-partial-messages")
    assert [each["type"] for each in lines if each["type"] != "stream_event"] == [
        "system",
        "system",
        "assistant",
        "assistant",
        "user",
        "system",
        "assistant",
        "result",
    ]
    assert len({each["session_id"] for each in lines}) == 1
    assert lines[0]["subtype"] == "init"
    assert lines[0]["apiKeySource"] == "ANTHROPIC_API_KEY"
    assert "Read" in lines[0]["tools"]
    result = lines[-1]
    assert (result["subtype"], result["is_error"], result["result"]) == ("success", False, "Done.")
    assert result["num_turns"] == 2
    assert result["usage"]["output_tokens"] > 0


def test_one_json_object(chat: Chat) -> None:
    result = json.loads(chat("-p", "hello", "--output-format", "json"))
    assert (result["type"], result["result"]) == ("result", "Yes.")
    assert result["session_id"] == chat.files[0].stem


def test_messages_come_in_as_lines(chat: Chat) -> None:
    said = [{"type": "user", "message": {"role": "user", "content": each}} for each in "ab"]
    given = "\n".join(json.dumps(each) for each in [*said, {"type": "control"}]) + "\n"
    lines = chat.lines("--input-format", "stream-json", given=given)
    assert [each["type"] for each in lines].count("result") == 2
    assert len(chat.files) == 1
    chat("-p", "--input-format", "stream-json", given="{nonsense\n", code=2)
    assert "invalid JSON" in chat.said


def test_an_answer_in_a_shape(chat: Chat, script: ScriptedResponder) -> None:
    script.on("calling StructuredOutput", tool("StructuredOutput", n=3)).then("There.")
    script.on("count", "Three.")
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    out = chat("-p", "count", "--json-schema", json.dumps(schema), "--output-format", "json")
    assert json.loads(out)["structured_output"] == {"n": 3}
    chat("-p", "count", "--json-schema", "[", code=2)


def test_going_on_resuming_and_forking(chat: Chat, script: ScriptedResponder) -> None:
    script.on("three", "Three.").on("two", "Two.").on("one", "One.")
    chat("-p", "one")
    chat("-p", "-c", "two")
    (path,) = chat.files
    assert len(chat.server.requests[-1].body["messages"]) == 3
    chat("-p", "-r", path.stem, "three")
    assert len(chat.server.requests[-1].body["messages"]) == 5
    before = path.read_bytes()
    chat("-p", "-r", path.stem, "--fork-session", "two")
    assert path.read_bytes() == before
    assert len(chat.files) == 2
    chat("-p", "-r", "nonsense", "x", code=1)
    chat("-p", "--fork-session", "x", code=2)
    chat.check()


def test_limits_end_it_with_a_result(chat: Chat, script: ScriptedResponder) -> None:
    script.on("go", tool("Glob", pattern="*")).otherwise(tool("Glob", pattern="*"))
    lines = chat.lines("go", "--max-turns", "2", code=1)
    assert lines[-1]["subtype"] == "error_max_turns"
    lines = chat.lines("go", "--max-budget-usd", "0.000001", code=1)
    assert lines[-1]["subtype"] == "error_max_budget_usd"


def test_the_time_for_it_can_be_limited(chat: Chat, script: ScriptedResponder) -> None:
    script.on("go", tool("Bash", command="sleep 600"))
    lines = chat.lines("go", "--max-time", "1.5", "--permission-mode", "bypassPermissions", code=1)
    assert lines[-1]["subtype"] == "error_max_time"
    assert "--max-time" in lines[-1]["errors"][0]
    chat("-p", "go", "--max-time", "0", code=2)
    chat.check()


def test_a_folder_that_is_gone_is_said_in_one_line(chat: Chat) -> None:
    gone = chat.project / "gone"
    gone.mkdir()
    command = ["sh", "-c", 'rmdir ../gone; exec "$@"', "sh", *chat.command("-p", "hello")]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=gone, env=chat.env, check=False)
    assert ran.returncode == 3
    assert ran.stderr.splitlines()[0] == "steno: the current directory no longer exists"
    assert "Traceback" not in ran.stderr
    assert chat.files == []


def test_an_error_ends_it_with_a_result_and_a_code(chat: Chat, script: ScriptedResponder) -> None:
    script.on("go", ErrorReply(status=403, kind="permission_error", message="not for you"))
    lines = chat.lines("go", code=1)
    assert lines[-1]["is_error"] is True
    assert "not for you" in lines[-1]["result"]
    chat.check()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_with_a_result(chat: Chat, script: ScriptedResponder, number: signal.Signals) -> None:
    door = Door()
    script.on("go", [text("Half", door)])
    ran = subprocess.Popen(
        [*chat.command("-p", "go", "--output-format", "stream-json", "--include-partial-messages")],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        cwd=chat.project,
        env=chat.env,
    )
    with ran:
        assert ran.stdout is not None
        for line in ran.stdout:
            if "text_delta" in line:
                break
        ran.send_signal(number)
        rest = [json.loads(line) for line in ran.stdout]
    door.release()
    assert ran.returncode == 128 + number
    assert rest[-1]["subtype"] == "error_during_execution"
    chat.check()


def test_whoever_breaks_in_is_told_that_the_next_message_is_taken(chat: Chat, script: ScriptedResponder) -> None:
    door = Door()
    script.on("one", [text("Half", door)]).on("two", "Yes, two.")
    stream = ["--input-format", "stream-json", "--output-format", "stream-json"]
    ran = subprocess.Popen(
        chat.command("-p", *stream, "--include-partial-messages"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=chat.project,
        env=chat.env,
    )
    with ran:
        assert ran.stdin is not None
        assert ran.stdout is not None
        assert ran.stderr is not None
        print(said("one"), file=ran.stdin, flush=True)
        for line in ran.stdout:
            if "text_delta" in line:
                ran.send_signal(signal.SIGINT)
                break
        assert "send the next message" in ran.stderr.readline()
        door.release()
        print(said("two"), file=ran.stdin)
        ran.stdin.close()
        rest = [json.loads(line) for line in ran.stdout]
    assert rest[-1]["result"] == "Yes, two."
    chat.check()


def said(words: str) -> str:
    return json.dumps({"type": "user", "message": {"role": "user", "content": words}})


def test_an_answer_that_never_has_the_shape_is_an_error_whatever_tools_there_are(
    chat: Chat, script: ScriptedResponder
) -> None:
    shape = ["--json-schema", '{"type": "object"}', "--output-format", "json"]
    out = json.loads(chat("-p", "count", *shape, code=1))
    assert (out["subtype"], out["is_error"]) == ("error_max_structured_output_retries", True)
    script.on("count", tool("StructuredOutput", n=3)).then("There.")
    out = json.loads(chat("-p", "count", *shape, "--tools", "Read"))
    assert out["structured_output"] == {"n": 3}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_while_it_waits_for_a_message(chat: Chat, number: signal.Signals) -> None:
    form = ["--output-format", "stream-json", "--input-format", "stream-json"]
    ran = subprocess.Popen(
        chat.command("-p", *form),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=chat.project,
        env=chat.env,
    )
    with ran:
        assert ran.stdin is not None
        assert ran.stdout is not None
        ran.stdin.write(json.dumps({"type": "user", "message": {"content": "one"}}) + "\n")
        ran.stdin.flush()
        for line in ran.stdout:
            if json.loads(line)["type"] == "result":
                break
        ran.send_signal(number)
        assert ran.wait(30) == 128 + number
    chat.check()


def test_where_nobody_listens_any_more_the_session_is_left_sound(chat: Chat, script: ScriptedResponder) -> None:
    door = Door()
    script.on("go", [text("Half", door), tool("Bash", command="touch made")]).then("Done.")
    ran = subprocess.Popen(
        chat.command("-p", "go", "--output-format", "stream-json", "--dangerously-skip-permissions"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=chat.project,
        env=chat.env,
    )
    with ran:
        assert ran.stdout is not None
        assert ran.stderr is not None
        ran.stdout.readline()
        ran.stdout.close()
        door.release()
        ran.wait(30)
        assert ran.stderr.read() == b""
    chat.check()


def test_what_is_wrong_with_the_surroundings_is_said_beside_the_answer(chat: Chat) -> None:
    servers = json.dumps({"mcpServers": {"odd": {}}})
    assert chat("-p", "hello", "--mcp-config", servers) == "Yes.\n"
    assert "--mcp-config" in chat.said
    servers = json.dumps({"mcpServers": {"gone": {"command": "/nonexistent/server"}}})
    assert chat("-p", "hello", "--mcp-config", servers) == "Yes.\n"
    assert "MCP server gone is not available" in chat.said
    chat("-p", "hello", "--settings", '{"permissions": {"deny": ["Bash(rm"]}}')
    assert "Bash(rm" in chat.said


def test_people_are_told_why_there_is_no_answer(chat: Chat, script: ScriptedResponder) -> None:
    script.on("go", tool("Glob", pattern="*"))
    assert chat("-p", "go", "--max-turns", "1", code=1) == ""
    assert "--max-turns" in chat.said


def test_a_new_session_has_an_id_of_its_own(chat: Chat) -> None:
    name = "11111111-2222-4333-8444-555555555555"
    chat("-p", "one", "--session-id", name)
    chat("-p", "two", "--session-id", name, code=2)
    chat("-p", "two", "-r", name, "--session-id", name, code=2)
    for bad in ("../../../../evil", "nonsense", name.replace("-", "")):
        chat("-p", "two", "--session-id", bad, code=2)
    (path,) = chat.files
    assert path.stem == name
    chat.check()


@pytest.mark.parametrize(
    "options",
    [
        ["--rewind", "x"],
        ["-c", "--fork-session", "--rewind", "x"],
        ["--max-budget-usd", "nan"],
        ["--max-budget-usd", "0"],
        ["--max-budget-usd", "-1"],
        ["--settings", "/nonexistent/settings.json"],
        ["--settings", "{bad"],
        ["--settings", "."],
        ["--mcp-config", "{bad"],
        ["--mcp-config", "/nonexistent/servers.json"],
        ["--mcp-config", '{"mcpServers": 5}'],
        ["--mcp-config", "{}"],
        ["--max-time", "nan"],
        ["--max-time", "inf"],
        ["--agents", "[]"],
        ["--agents", "nonsense"],
        ["--add-dir", "/nonexistent"],
        ["--tools", "Read,Foo"],
    ],
)
def test_options_that_make_no_sense_are_refused(chat: Chat, options: list[str]) -> None:
    chat("-p", "one", *options, code=2)
    assert chat.files == []


def test_a_folder_whose_name_is_no_text_is_refused(chat: Chat) -> None:
    chat.project = Path(os.fsdecode(os.fsencode(chat.project) + b"/na\xffme"))
    chat.project.mkdir()
    chat("-p", "one", code=2)
    assert "not valid UTF-8" in chat.said


def test_a_folder_may_have_any_other_name(chat: Chat, script: ScriptedResponder) -> None:
    chat.project = chat.project / "we\nird \x1b[31m 日本"
    chat.project.mkdir()
    script.on("go", tool("Write", file_path="a.txt", content="here")).then("Done.")
    chat("-p", "go", "--permission-mode", "acceptEdits")
    assert (chat.project / "a.txt").read_text() == "here"
    assert chat("-p", "-c", "and") == "Yes.\n"
    chat.check()


def test_messages_that_are_none_are_refused(chat: Chat) -> None:
    for content in ([5], {}, [], "", 7):
        line = json.dumps({"type": "user", "message": {"content": content}})
        chat("-p", "--input-format", "stream-json", given=line, code=2)


def test_a_prompt_that_a_hook_keeps_out_leaves_nothing_to_go_on_with(chat: Chat) -> None:
    hook = {"hooks": [{"type": "command", "command": "echo no way >&2; exit 2"}]}
    settings = json.dumps({"hooks": {"UserPromptSubmit": [hook]}})
    assert "no way" in chat("-p", "one", "--settings", settings, code=1)
    assert b'"informational"' in chat.files[0].read_bytes()
    chat("-p", "-c", "two", code=1)
    chat("-p", "three")
    chat("-p", "four", "--settings", settings, code=1)
    assert chat("-p", "-c", "five") == "Yes.\n"
    (sent,) = {str(each.body["messages"]) for each in list(chat.server.requests)[-1:]}
    assert "three" in sent
    assert "four" not in sent


def test_what_sub_agents_cost_counts(chat: Chat, script: ScriptedResponder) -> None:
    dear = {"input_tokens": 1_000_000, "output_tokens": 1_000_000}
    script.on("dear work", Reply(content=(text("Done."),), usage=dear))
    script.on("go", tool("Agent", description="d", prompt="dear work")).then("All done.")
    out = json.loads(chat("-p", "go", "--json"))
    assert out["total_cost_usd"] > 1
    out = json.loads(chat("-p", "go", "--json", "--max-budget-usd", "1", code=1))
    assert out["subtype"] == "error_max_budget_usd"


def test_a_sub_agent_has_no_tool_that_the_session_has_not(chat: Chat, script: ScriptedResponder) -> None:
    script.on("sub work", tool("Bash", command="touch made")).then("Done.")
    script.on("go", tool("Agent", description="d", prompt="sub work")).then("All done.")
    chat("-p", "go", "--tools", "Agent", "--dangerously-skip-permissions")
    assert list(chat.project.iterdir()) == []


def test_a_sub_agent_of_no_named_kind_may_write(chat: Chat, script: ScriptedResponder) -> None:
    made = chat.project / "made"
    script.on("sub work", tool("Write", file_path=str(made), content="x")).then("Done.")
    script.on("go", tool("Agent", description="d", prompt="sub work")).then("All done.")
    chat("-p", "go", "--permission-mode", "acceptEdits")
    assert made.read_text() == "x"


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="only Linux shows it")
def test_no_tool_finds_the_key_in_the_environment_of_the_process(chat: Chat, script: ScriptedResponder) -> None:
    look = "tr '\\0' '\\n' < /proc/$PPID/environ | grep ANTHROPIC"
    script.on("go", [tool("Bash", command=look), tool("Read", file_path="/proc/self/environ")])
    script.then("All done.")
    chat("-p", "go", "--dangerously-skip-permissions")
    (path,) = chat.files
    assert "ANTHROPIC_API_KEY=-----" in path.read_text()
    chat.check()


def test_what_a_sub_agent_started_ends_with_it(chat: Chat, script: ScriptedResponder) -> None:
    command = "echo $BASHPID > pid; exec sleep 600"
    script.on("sub work", tool("Bash", command=command, run_in_background=True))
    script.then(tool("Bash", command="until test -s pid; do :; done")).then("It runs.")
    script.on("go", tool("Agent", description="d", prompt="sub work")).then("All done.")
    chat("-p", "go", "--dangerously-skip-permissions")
    with pytest.raises(ProcessLookupError):
        os.kill(int((chat.project / "pid").read_text()), 0)


def test_a_long_session_is_compacted_before_it_goes_on(chat: Chat, script: ScriptedResponder) -> None:
    script.on("Summarize", "It was long.")
    script.on("long", Reply(content=(text("Very."),), usage={"input_tokens": 190_000}))
    chat("-p", "long")
    lines = chat.lines("-c", "again")
    assert "compact_boundary" in [each.get("subtype") for each in lines]
    chat.check()


def test_a_disk_that_is_full_still_ends_with_a_result(chat: Chat) -> None:
    (chat.home / ".claude").mkdir(parents=True)
    (chat.home / ".claude" / "projects").touch()
    lines = chat.lines("one", code=3)
    assert lines[-1]["subtype"] == "error_during_execution"


def test_without_a_key_or_words_it_says_what_to_do(chat: Chat) -> None:
    env = {name: value for name, value in chat.env.items() if name != "ANTHROPIC_API_KEY"}
    chat("-p", "hello", env=env, code=2)
    assert "ANTHROPIC_API_KEY" in chat.said
    chat("-p", code=2)
    assert "no prompt given" in chat.said
    chat("hello", code=2)
    assert "the console needs a terminal" in chat.said
    assert chat.files == []


def test_a_projects_own_settings_count_only_when_it_is_trusted(chat: Chat, script: ScriptedResponder) -> None:
    script.on("go", tool("Bash", command="touch made")).then("Done.")
    folder = chat.project / ".claude"
    folder.mkdir()
    settings = {"permissions": {"allow": ["Bash(touch:*)"]}, "env": {"X": "1"}}
    (folder / "settings.json").write_text(json.dumps(settings))
    (chat.project / "CLAUDE.md").write_text("Always say please.")
    chat("-p", "go")
    assert not (chat.project / "made").exists()
    assert "Always say please." not in str(chat.server.requests[-1].body["system"])
    chat("-p", "go", "--trust")
    assert (chat.project / "made").exists()
    assert "Always say please." in str(chat.server.requests[-1].body["system"])


def test_taken_back_the_conversation_and_the_files_are_as_they_were(chat: Chat, script: ScriptedResponder) -> None:
    path = chat.project / "a.py"
    path.write_text("print(1)\n")
    script.on("otherwise", "Fine.")
    script.on("fix", tool("Read", file_path=str(path)))
    script.then(tool("Edit", file_path=str(path), old_string="1", new_string="2"))
    script.then(tool("Bash", command="touch made")).then("Fixed.")
    allowed = ("--permission-mode", "acceptEdits", "--allowedTools", "Bash(touch:*)")
    chat("-p", "fix it", *allowed)
    assert path.read_text() == "print(2)\n"
    assert (chat.project / "made").exists()
    records = [json.loads(line) for line in chat.files[0].read_bytes().splitlines()]
    prompt = next(each["uuid"] for each in records if each["type"] == "user")
    out = chat("-p", "-c", "--rewind-files", prompt)
    assert path.read_text() == "print(1)\n"
    assert not (chat.project / "made").exists()
    assert "a.py" in out
    chat("-p", "-c", "--rewind", prompt, "otherwise")
    assert len(chat.server.requests[-1].body["messages"]) == 1
    assert chat("-p", "-c", "--rewind-files", "nonsense", code=1) == ""
    chat.check()


def test_programs_do_not_see_the_key_and_a_change_of_folder_is_recorded(chat: Chat, script: ScriptedResponder) -> None:
    (chat.project / "sub").mkdir()
    script.on("go", tool("Bash", command="env; cd sub")).then("Done.")
    chat("-p", "go", "--dangerously-skip-permissions")
    assert KEY not in str(chat.server.requests[-1].body)
    records = [json.loads(line) for line in chat.files[0].read_bytes().splitlines()]
    assert [each["cwd"] for each in records if "cwd" in each][-1] == str(chat.project / "sub")
    chat.check()
