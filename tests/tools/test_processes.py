"""Commands in the background, on real processes."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.children import children

from steno.tools.builtin.bash import Bash, TaskOutput, TaskStop
from steno.tools.context import ToolContext
from steno.tools.output import OutputLog
from steno.tools.processes import BackgroundShell
from steno.tools.protocol import ToolFailure, ToolResult

FOREVER = "tail -f /dev/null"


class Notices:
    """Gathers notices and lets one wait for them."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self._waiting: list[tuple[int, asyncio.Event]] = []

    def take(self, words: str) -> None:
        self.words.append(words)
        for number, event in self._waiting:
            if len(self.words) >= number:
                event.set()

    async def wait(self, number: int = 1) -> None:
        event = asyncio.Event()
        self._waiting.append((number, event))
        if len(self.words) < number:
            await event.wait()


def make(tmp_path: Path, notify: Callable[[str], None] = lambda _words: None) -> ToolContext:
    return ToolContext(
        cwd=str(tmp_path),
        project=str(tmp_path),
        session_id="s",
        folder=str(tmp_path / "session"),
        env={"PATH": os.environ["PATH"]},
        notify=notify,
    )


async def begin(context: ToolContext, command: str, description: str = "") -> ToolResult:
    given = {"command": command, "run_in_background": True, "description": description}
    return await Bash().run(given, context, "toolu_bg")


async def output(context: ToolContext, task: str, **more: Any) -> dict[str, Any]:
    return (await TaskOutput().run({"task_id": task, **more}, context, "toolu_out")).detail


def lives(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text("utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] not in {"Z", "X"}


class Watched(OutputLog):
    """A log that lets one wait until something is in it."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.written = asyncio.Event()

    def add(self, data: bytes) -> None:
        super().add(data)
        if b"\n" in data:
            self.written.set()


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steno.tools.processes.OutputLog", Watched)


async def first_number(context: ToolContext, task: str) -> int:
    """Wait until a task has printed a number."""
    shell = context.background.tasks[task]
    assert isinstance(shell, BackgroundShell)
    assert isinstance(shell.log, Watched)
    await shell.log.written.wait()
    return int((await asyncio.to_thread(Path(shell.log.path).read_text, "utf-8")).split()[0])


def test_a_command_in_the_background_ends_and_tells(tmp_path: Path) -> None:
    async def go() -> None:
        notices = Notices()
        context = make(tmp_path, notices.take)
        begun = await begin(context, "echo tick; echo tock >&2; exit 3", "ticker")
        task = begun.detail["backgroundTaskId"]
        path = tmp_path / "session" / "tool-results" / f"{task}.txt"
        assert str(begun.content).startswith(
            f"Command running in background with ID: {task}. Output is being written to: {path}."
        )
        assert begun.detail["stdout"] == ""
        await notices.wait()
        (words,) = notices.words
        assert words == (
            f"<task-notification>\n<task-id>{task}</task-id>\n"
            f"<tool-use-id>toolu_bg</tool-use-id>\n<output-file>{path}</output-file>\n"
            '<status>failed</status>\n<summary>Background command "ticker" failed (exit code 3)'
            "</summary>\n</task-notification>"
        )
        read = await output(context, task)
        assert read == {
            "retrieval_status": "success",
            "task": {
                "task_id": task,
                "task_type": "local_bash",
                "status": "failed",
                "description": "ticker",
                "output": "tick\ntock\n",
                "exitCode": 3,
            },
        }
        assert sorted(path.read_text("utf-8").split()) == ["tick", "tock"]
        await context.background.close()

    asyncio.run(go())


def test_only_what_is_new_is_read(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)

    async def go() -> None:
        context = make(tmp_path)
        command = "while read line; do echo got $line; echo ok > answer; done < fifo"
        os.mkfifo(tmp_path / "answer")
        task = (await begin(context, command)).detail["backgroundTaskId"]
        writer = await asyncio.to_thread(os.open, fifo, os.O_WRONLY)
        for word in ("one", "two"):
            os.write(writer, f"{word}\n".encode())
            await asyncio.to_thread((tmp_path / "answer").read_text, "utf-8")
            read = await output(context, task, block=False)
            assert read["retrieval_status"] == "not_ready"
            assert read["task"]["status"] == "running"
            assert read["task"]["output"] == f"got {word}\n"
            assert read["task"]["exitCode"] is None
        os.close(writer)
        read = await output(context, task)
        assert (read["retrieval_status"], read["task"]["output"]) == ("success", "")
        await context.background.close()

    asyncio.run(go())


def test_waiting_has_an_end(tmp_path: Path) -> None:
    async def go() -> None:
        context = make(tmp_path)
        task = (await begin(context, FOREVER)).detail["backgroundTaskId"]
        read = await output(context, task, timeout=20)
        assert (read["retrieval_status"], read["task"]["status"]) == ("timeout", "running")
        await context.background.close()

    asyncio.run(go())


def test_whoever_waits_is_not_told_twice(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")

    async def go() -> None:
        notices = Notices()
        context = make(tmp_path, notices.take)
        task = (await begin(context, "read x < fifo; echo $x")).detail["backgroundTaskId"]
        reading = asyncio.create_task(output(context, task))
        await asyncio.to_thread((tmp_path / "fifo").write_text, "now\n", "utf-8")
        read = await reading
        assert read["task"]["output"] == "now\n"
        assert notices.words == []
        await context.background.close()

    asyncio.run(go())


def test_the_older_names_for_the_id_are_known(tmp_path: Path) -> None:
    async def go() -> None:
        context = make(tmp_path)
        task = (await begin(context, FOREVER)).detail["backgroundTaskId"]
        outcome = await TaskOutput().run({"bash_id": task}, context, "t")
        assert outcome.detail["retrieval_status"] == "not_ready"
        outcome = await TaskStop().run({"shell_id": task}, context, "t")
        assert outcome.detail["task_id"] == task

    asyncio.run(go())


@pytest.mark.parametrize(
    "command",
    [
        f"echo $$; {FOREVER}",
        f"trap '' TERM; echo $$; {FOREVER}; {FOREVER}",
        f"setsid bash -c 'echo $$; {FOREVER}; :' & wait",
    ],
)
@pytest.mark.usefixtures("watched")
def test_stopping_ends_every_process(tmp_path: Path, command: str) -> None:
    async def go() -> None:
        notices = Notices()
        context = make(tmp_path, notices.take)
        task = (await begin(context, command, "long")).detail["backgroundTaskId"]
        pid = await first_number(context, task)
        outcome = await TaskStop().run({"task_id": task}, context, "toolu_stop")
        assert outcome.detail == {
            "message": f"Successfully stopped task: {task} (long)",
            "task_id": task,
            "task_type": "local_bash",
            "command": command,
        }
        assert not lives(pid)
        read = await output(context, task)
        assert read["task"]["status"] == "killed"
        assert notices.words == []
        with pytest.raises(ToolFailure, match="not running"):
            await TaskStop().run({"task_id": task}, context, "toolu_stop")
        await context.background.close()

    asyncio.run(go())


def test_many_run_side_by_side_and_all_tell(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    count = 40

    async def go() -> None:
        notices = Notices()
        context = make(tmp_path, notices.take)
        # One byte each: bash reads lines byte by byte, and they would share them out.
        commands = [f"read -N 1 x < gate; echo {number} $x" for number in range(count)]
        begun = await asyncio.gather(*(begin(context, command) for command in commands))
        tasks = [each.detail["backgroundTaskId"] for each in begun]
        assert len(set(tasks)) == count
        gate = os.open(tmp_path / "gate", os.O_RDWR)
        os.write(gate, b"g" * count)
        await notices.wait(count)
        os.close(gate)
        for number, task in enumerate(tasks):
            read = await output(context, task)
            assert read["task"]["output"] == f"{number} g\n"
            assert read["task"]["exitCode"] == 0
        await context.background.close()

    asyncio.run(go())


@pytest.mark.usefixtures("watched")
def test_closing_the_conversation_ends_all_of_them(tmp_path: Path) -> None:
    async def go() -> list[int]:
        notices = Notices()
        context = make(tmp_path, notices.take)
        begun = [await begin(context, f"echo $$; {FOREVER}") for _ in range(8)]
        tasks = [each.detail["backgroundTaskId"] for each in begun]
        pids = [await first_number(context, task) for task in tasks]
        assert all(map(lives, pids))
        await context.background.close()
        assert {task.status for task in context.background.tasks.values()} == {"killed"}
        assert notices.words == []
        return pids

    before = children()
    pids = asyncio.run(go())
    assert not any(map(lives, pids))
    assert children() <= before


def test_closing_twice_and_with_nothing_running_is_fine(tmp_path: Path) -> None:
    async def go() -> None:
        context = make(tmp_path)
        await context.background.close()
        await begin(context, "true")
        await context.background.close()
        await context.background.close()

    before = len(list(Path("/proc/self/fd").iterdir()))
    asyncio.run(go())
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_command_in_the_background_does_not_move_the_conversation(tmp_path: Path) -> None:
    async def go() -> None:
        notices = Notices()
        context = make(tmp_path, notices.take)
        await begin(context, "cd /")
        await notices.wait()
        assert context.cwd == str(tmp_path)
        await context.background.close()

    asyncio.run(go())


@pytest.mark.parametrize("given", [{}, {"task_id": "b00000000"}, {"task_id": ["x"]}])
def test_a_task_that_is_not_there_is_a_failure_in_words(tmp_path: Path, given: dict[str, Any]) -> None:
    async def go() -> None:
        for tool in (TaskOutput(), TaskStop()):
            with pytest.raises(ToolFailure):
                await tool.run(given, make(tmp_path), "t")

    asyncio.run(go())


def test_what_is_added_by_others_is_read_and_stopped_like_a_command(tmp_path: Path) -> None:
    class Agent:
        id = "a1"
        kind = "local_agent"
        description = "look around"
        command = ""
        status = "running"
        exit_code: int | None = None

        def read(self) -> str:
            return "report"

        async def wait(self, seconds: float) -> None:
            del seconds
            self.status = "completed"

        async def stop(self) -> None:
            self.status = "killed"

    async def go() -> None:
        context = make(tmp_path)
        context.background.tasks["a1"] = Agent()
        read = await output(context, "a1")
        assert read["task"]["output"] == "report"
        assert read["task"]["task_type"] == "local_agent"

    asyncio.run(go())
