"""Commands, on real processes."""

import asyncio
import os
import stat
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest
from tests.children import children

from steno.tools.builtin.bash import Bash
from steno.tools.context import ToolContext
from steno.tools.processes import CALL_VARIABLE
from steno.tools.protocol import ToolFailure, ToolResult

FOREVER = "tail -f /dev/null"


def make(tmp_path: Path, **more: Any) -> ToolContext:
    return ToolContext(
        cwd=str(tmp_path),
        project=str(tmp_path),
        session_id="s",
        folder=str(tmp_path / "session"),
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        **more,
    )


def bash(context: ToolContext, command: str, **more: Any) -> ToolResult:
    async def go() -> ToolResult:
        try:
            return await Bash().run({"command": command, **more}, context, "toolu_01")
        finally:
            await context.background.close()

    return asyncio.run(go())


def lives(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text("utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] not in {"Z", "X"}


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def until(context: ToolContext, word: str) -> asyncio.Event:
    """Return an event that is set when a command has printed a word."""
    event = asyncio.Event()
    said: list[str] = []

    def progress(_call: str, text: str) -> None:
        said.append(text)
        if word in "".join(said):
            event.set()

    context.on_progress = progress
    return event


# What it says


def test_output_is_joined_for_the_model_and_apart_in_the_detail(tmp_path: Path) -> None:
    outcome = bash(make(tmp_path), "echo out; echo err >&2")
    assert outcome.content == "out\nerr"
    assert outcome.detail == {
        "stdout": "out",
        "stderr": "err",
        "interrupted": False,
        "isImage": False,
        "noOutputExpected": False,
    }
    assert not outcome.is_error


@pytest.mark.parametrize(
    ("command", "code"), [("exit 3", 3), ("false", 1), ("kill -9 $$", 137), ("no-such-program", 127), ("if then", 2)]
)
def test_a_failure_says_its_exit_code(tmp_path: Path, command: str, code: int) -> None:
    outcome = bash(make(tmp_path), command)
    assert outcome.is_error
    assert isinstance(outcome.content, str)
    assert outcome.content.split("\n")[0] == f"Exit code {code}"
    assert outcome.detail == f"Error: {outcome.content}"


def test_bash_counts_the_lines_of_the_command_from_one(tmp_path: Path) -> None:
    content = bash(make(tmp_path), "no-such-program").content
    assert "line 1: no-such-program" in str(content)


def test_a_command_without_output_says_so(tmp_path: Path) -> None:
    assert bash(make(tmp_path), "true").content == "(no output)"


def test_a_command_gets_the_environment_and_no_arguments(tmp_path: Path) -> None:
    context = make(tmp_path)
    context.env["TIDE"] = "high"
    assert bash(context, 'echo "$TIDE $# ${STENO_CALL:+marked}"').content == "high 0 marked"


def test_a_command_within_a_command_bears_the_marks_of_both(tmp_path: Path) -> None:
    context = make(tmp_path)
    context.env[CALL_VARIABLE] = "outer"
    content = str(bash(context, f"echo ${CALL_VARIABLE}").content)
    assert content.startswith("outer,c")


def test_a_command_has_no_input(tmp_path: Path) -> None:
    assert bash(make(tmp_path), "read x || echo end").content == "end"


def test_a_here_document_and_quotes_reach_bash_unchanged(tmp_path: Path) -> None:
    outcome = bash(make(tmp_path), "cat <<'E'\nit's \"$HOME\" \\n {x}\nE")
    assert outcome.content == 'it\'s "$HOME" \\n {x}'


def test_escapes_and_bytes_that_are_no_text_are_made_harmless(tmp_path: Path) -> None:
    command = r"printf '\033[31mred\033[0m \033]0;title\007|\xff\x00|\r\nnext\a'"
    outcome = bash(make(tmp_path), command)
    assert outcome.content == "red |\ufffd␀|\nnext␇"


def test_output_is_streamed_while_it_runs(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)

    async def go() -> ToolResult:
        context = make(tmp_path)
        first = until(context, "first")
        run = Bash().run({"command": "echo first; read x < fifo; echo $x"}, context, "toolu_01")
        running = asyncio.create_task(run)
        await first.wait()
        # The command reads this only now: what came before was shown while it ran.
        await asyncio.to_thread(fifo.write_text, "second\n", "utf-8")
        return await running

    assert asyncio.run(go()).content == "first\nsecond"


def test_ten_thousand_lines_of_both_streams_are_all_kept(tmp_path: Path) -> None:
    context = make(tmp_path)
    command = "for i in {1..10000}; do echo out $i; echo err $i >&2; done"
    outcome = bash(context, command)
    saved = Path(outcome.detail["persistedOutputPath"]).read_text("utf-8").splitlines()
    numbers = range(1, 10001)
    assert saved == [f"out {i}" for i in numbers] + [f"err {i}" for i in numbers]


# What is too much


def test_output_over_the_limit_is_saved_whole_and_the_model_gets_its_beginning(tmp_path: Path) -> None:
    outcome = bash(make(tmp_path), "seq 1 20000")
    path = tmp_path / "session" / "tool-results" / "toolu_01.txt"
    assert path.read_text("utf-8") == "".join(f"{i}\n" for i in range(1, 20001))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    content = str(outcome.content)
    assert content.startswith(
        f"<persisted-output>\nOutput too large (106.3KB). Full output saved to: {path}\n\nPreview (first 2KB):\n1\n2\n"
    )
    assert content.endswith("\n527\n...\n</persisted-output>")
    assert len(outcome.detail["stdout"]) == 30_000
    assert outcome.detail["persistedOutputPath"] == str(path)
    assert outcome.detail["persistedOutputSize"] == 108_894


def test_output_at_the_limit_is_given_whole(tmp_path: Path) -> None:
    outcome = bash(make(tmp_path), "head -c 30000 /dev/zero | tr '\\0' a")
    assert outcome.content == "a" * 30_000
    assert "persistedOutputPath" not in outcome.detail


def test_a_failure_with_much_output_says_the_code_first(tmp_path: Path) -> None:
    outcome = bash(make(tmp_path), "seq 1 20000; exit 7")
    assert str(outcome.content).startswith("Exit code 7\n<persisted-output>\n")


def test_binary_output_is_saved_byte_for_byte(tmp_path: Path) -> None:
    data = os.urandom(400_000)
    (tmp_path / "data").write_bytes(data)
    outcome = bash(make(tmp_path), "cat data")
    assert Path(outcome.detail["persistedOutputPath"]).read_bytes() == data
    assert "\x00" not in outcome.content
    assert "\x1b" not in outcome.content


def test_an_id_that_is_no_plain_name_names_no_file(tmp_path: Path) -> None:
    async def go() -> ToolResult:
        return await Bash().run({"command": "seq 1 20000"}, make(tmp_path), "../../evil")

    path = Path(asyncio.run(go()).detail["persistedOutputPath"])
    assert path.parent == tmp_path / "session" / "tool-results"


def test_a_child_that_prints_without_end_does_not_hold_up_the_command(tmp_path: Path) -> None:
    context = make(tmp_path)
    outcome = bash(context, "yes & echo $! > pid")
    assert not outcome.is_error
    assert not lives(int((tmp_path / "pid").read_text("utf-8")))
    assert context.background._detached_shells == set()


# Where it works


@pytest.mark.parametrize(
    "command",
    [
        "cd sub",
        "cd sub; exit 0",
        "cd sub && exec true",
        "trap 'echo bye' EXIT; cd sub; exit 0",
        "set -e; cd sub; false",
        "pushd sub > /dev/null",
        "builtin cd sub; exit 4",
        "cd sub; kill -9 $$",
        "cd sub; set -u; : $nothing",
        "f() { cd sub; }; f",
        "set -x; cd sub",
    ],
)
def test_the_directory_stays_however_the_command_ends(tmp_path: Path, command: str) -> None:
    (tmp_path / "sub").mkdir()
    context = make(tmp_path)
    bash(context, command)
    assert context.cwd == str(tmp_path / "sub")
    assert bash(context, "pwd").content == str(tmp_path / "sub")


@pytest.mark.parametrize("command", ["(cd sub)", "cd sub | cat", "cd sub & wait", "bash -c 'cd sub'"])
def test_a_subshell_does_not_move_the_conversation(tmp_path: Path, command: str) -> None:
    (tmp_path / "sub").mkdir()
    context = make(tmp_path)
    bash(context, command)
    assert context.cwd == str(tmp_path)


@pytest.mark.parametrize("command", ["cd ..", "cd /", "cd out", "cd sub/../..", "pushd /tmp"])
def test_a_command_does_not_lead_the_conversation_out_of_its_folders(tmp_path: Path, command: str) -> None:
    project = tmp_path / "proj"
    (project / "sub").mkdir(parents=True)
    (tmp_path / "proj-too").mkdir()
    (project / "out").symlink_to(tmp_path / "proj-too")
    context = make(project)
    context.folders = (str(project),)
    outcome = bash(context, f"{command} >/dev/null; echo there")
    assert context.cwd == str(project)
    assert outcome.content == f"there\nShell cwd was reset to {project}"
    assert bash(context, "cd sub").content == "(no output)"
    assert context.cwd == str(project / "sub")


def test_a_command_may_go_to_any_of_the_working_folders(tmp_path: Path) -> None:
    project, other = tmp_path / "proj", tmp_path / "other"
    project.mkdir()
    other.mkdir()
    context = make(project)
    context.folders = (str(project), str(other))
    assert not bash(context, f"cd {other}").is_error
    assert context.cwd == str(other)


def test_a_command_has_no_terminal(tmp_path: Path) -> None:
    outcome = bash(make(tmp_path), "tty; echo x > /dev/tty || echo none")
    assert str(outcome.content).startswith("not a tty\nnone")


def test_a_directory_with_any_letters_is_followed(tmp_path: Path) -> None:
    odd = tmp_path / "two words\n'quoted' ünï"
    odd.mkdir()
    context = make(tmp_path)
    bash(context, "cd two*")
    assert context.cwd == str(odd)


def test_a_link_to_the_directory_stays_as_it_was_said(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    context = make(tmp_path)
    context.cwd = str(tmp_path / "link")
    bash(context, "true")
    assert context.cwd == str(tmp_path / "link")


def test_nothing_runs_when_the_directory_is_gone(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    context = make(tmp_path)
    bash(context, "cd sub")
    (tmp_path / "sub").rmdir()
    with pytest.raises(ToolFailure, match="no longer exists"):
        bash(context, "touch ran")
    assert not (tmp_path / "ran").exists()
    assert bash(context, "pwd").content == str(tmp_path)


def test_tracing_shows_nothing_of_ours(tmp_path: Path) -> None:
    assert "__steno" not in str(bash(make(tmp_path), "set -x; cd /; true").content)


# How it ends


def test_a_time_out_ends_it_and_keeps_what_was_printed(tmp_path: Path) -> None:
    outcome = bash(make(tmp_path), f"echo before; {FOREVER}", timeout=300)
    assert outcome.content == "Command timed out after 0.3s\nbefore"
    assert outcome.is_error
    assert outcome.detail["interrupted"] is True
    assert outcome.detail["stdout"] == "before"


@pytest.mark.parametrize(
    "command",
    [
        f"echo $$; {FOREVER}",
        f"trap '' TERM; echo $$; {FOREVER}; {FOREVER}",
        f"(trap '' TERM; echo $BASHPID; {FOREVER}; {FOREVER}) & wait",
        f"setsid bash -c 'echo $$; {FOREVER}' & wait",
        f"setsid bash -c 'trap \"\" TERM; echo $$; {FOREVER}; {FOREVER}' & wait",
        f"(setsid bash -c 'echo $$; exec {FOREVER}' &); {FOREVER}",
        f"env -i setsid bash -c 'echo $$; {FOREVER}; :' & wait",
        f"(env -i setsid bash -c 'echo $$; {FOREVER}; :' &); {FOREVER}",
        f"(env -i setsid bash -c '(echo $BASHPID; {FOREVER}; :) &' &); {FOREVER}",
        "bash -c 'echo $$; kill -STOP $$'",
    ],
)
def test_a_cancel_ends_every_process_of_the_command(tmp_path: Path, command: str) -> None:
    context = make(tmp_path)
    said: list[str] = []

    async def go() -> None:
        ready = until(context, "\n")
        inner = context.on_progress

        def progress(call: str, text: str) -> None:
            said.append(text)
            inner(call, text)

        context.on_progress = progress
        running = asyncio.create_task(Bash().run({"command": command}, context, "toolu_01"))
        await ready.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(go())
    assert not lives(int("".join(said).split()[0]))


def test_a_second_cancel_kills_at_once(tmp_path: Path) -> None:
    context = make(tmp_path)
    said: list[str] = []

    async def go() -> None:
        ready = until(context, "\n")
        inner = context.on_progress
        context.on_progress = lambda call, text: (said.append(text), inner(call, text))[0]
        command = f"trap '' TERM; echo $$; {FOREVER}; {FOREVER}"
        running = asyncio.create_task(Bash().run({"command": command}, context, "toolu_01"))
        await ready.wait()
        running.cancel()
        for _ in range(3):
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        # What is still under way ends before the loop does.
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)

    asyncio.run(go())
    assert not lives(int("".join(said).split()[0]))


def test_a_time_out_kills_a_child_that_ignores_being_asked(tmp_path: Path) -> None:
    command = f"(trap '' TERM; echo $BASHPID > pid; {FOREVER}; {FOREVER}) & wait"
    bash(make(tmp_path), command, timeout=500)
    assert not lives(int((tmp_path / "pid").read_text("utf-8")))


def test_no_child_of_ours_stays_behind_unfetched(tmp_path: Path) -> None:
    before = children()
    context = make(tmp_path)
    bash(context, "true")
    bash(context, FOREVER, timeout=100)
    assert children() <= before


def test_what_a_command_leaves_running_ends_with_the_conversation(tmp_path: Path) -> None:
    outcome = bash(make(tmp_path), f"{FOREVER} & echo $!")
    assert not outcome.is_error
    assert not lives(int(str(outcome.content)))


def test_what_a_command_leaves_running_may_print_on(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)

    async def go() -> None:
        context = make(tmp_path)
        command = "{ read x < fifo; echo $x; echo $x >&2; echo done > result; } & :"
        await Bash().run({"command": command}, context, "toolu_01")
        over = asyncio.Event()
        (stray,) = context.background._detached_shells
        stray.on_quiet = over.set
        await asyncio.to_thread(fifo.write_text, "on\n", "utf-8")
        await over.wait()

    asyncio.run(go())
    assert (tmp_path / "result").read_text("utf-8") == "done\n"


# What is refused, and what is in between


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"command": ""},
        {"command": "  \n"},
        {"command": 5},
        {"command": "true", "timeout": -1},
        {"command": "true", "timeout": "soon"},
        {"command": "echo \x00"},
        {"command": "echo \ud800"},
        {"command": ": " + "a" * 3_000_000},
    ],
)
def test_a_bad_call_is_a_failure_in_words(tmp_path: Path, given: dict[str, Any]) -> None:
    async def go() -> None:
        with pytest.raises(ToolFailure):
            await Bash().run(given, make(tmp_path), "toolu_01")

    before = descriptors()
    asyncio.run(go())
    assert descriptors() == before


def test_a_wrapper_gets_the_command_line_and_gives_another(tmp_path: Path) -> None:
    context = make(tmp_path)
    seen: list[list[str]] = []

    def wrap(argv: list[str], *, command: str, cwd: str, outside: bool) -> list[str]:
        seen.append(argv)
        assert (command, cwd, outside) == ("cd sub; echo $WRAPPED", str(tmp_path), False)
        return ["env", "WRAPPED=yes", *argv]

    (tmp_path / "sub").mkdir()
    context.sandbox = wrap
    assert bash(context, "cd sub; echo $WRAPPED").content == "yes"
    assert context.cwd == str(tmp_path / "sub")
    assert seen[0][:2] == ["/bin/bash", "-c"]


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    context = make(tmp_path)
    bash(context, "true")
    before = descriptors()
    for _ in range(5):
        bash(context, "seq 1 200000")
    assert descriptors() == before


def test_commands_of_several_conversations_run_side_by_side(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "one")
    os.mkfifo(tmp_path / "two")

    def part(command: str) -> Awaitable[ToolResult]:
        return Bash().run({"command": command}, make(tmp_path), "toolu_01")

    async def go() -> list[Any]:
        # Each waits for the other: one after the other they would never end.
        return list(
            await asyncio.gather(part("echo from-first > one; cat two"), part("cat one; echo from-second > two"))
        )

    first, second = asyncio.run(go())
    assert (first.content, second.content) == ("from-second", "from-first")
