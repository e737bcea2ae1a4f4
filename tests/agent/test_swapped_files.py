"""What is opened is what was judged, whatever was put in its way since."""

import asyncio
import os
import shutil
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.campaign.size import sized

from steno.agent.tool_executor import Approval, ToolExecutor
from steno.llm.messages_api import Block
from steno.permissions.permission_checker import PermissionChecker
from steno.permissions.permission_rules import Decision, PermissionMode, RuleSource, parse_rules
from steno.tools.context import ToolContext
from steno.tools.protocol import ToolResult
from steno.tools.registry import ToolRegistry, builtin_tools

_HIDDEN = "nobody is to see this"
_BOOK = '{"cells": [{"cell_type": "code", "source": "%s", "outputs": []}], "nbformat": 4}'


class House:
    """A project with a folder in it, and a file of the same name outside."""

    def __init__(self, folder: Path) -> None:
        self.project = (folder / "proj").resolve()
        self.outside = (folder / "outside").resolve()
        self.aside = self.project / "aside"
        self.docs = self.project / "docs"
        for place, words in ((self.docs, "plain words"), (self.outside, _HIDDEN)):
            place.mkdir(parents=True)
            (place / "a.txt").write_text(f"{words}\n", encoding="utf-8")
            (place / "a.ipynb").write_text(_BOOK % words, encoding="utf-8")
        self.context = ToolContext(
            cwd=str(self.project),
            project=str(self.project),
            session_id="s",
            folder=str(folder),
            env={"HOME": str(folder / "home"), "PATH": os.environ["PATH"]},
        )

    def caller(
        self,
        consent: Callable[[Block, Decision], Awaitable[Approval]] | None = None,
        mode: PermissionMode = "default",
        **rules: tuple[str, ...],
    ) -> ToolExecutor:
        cwd = str(self.project)
        home = self.context.env["HOME"]
        made = parse_rules([RuleSource(**rules)], root=cwd, cwd=cwd, home=home)
        guard = PermissionChecker(made, mode, cwd, (cwd,), home=home)
        self.context.visibility_filter = guard.visibility_filter
        caller = ToolExecutor(
            tools=ToolRegistry(builtin_tools()),
            context=self.context,
            permission_checker=guard,
            emit=lambda _event: None,
        )
        if consent is not None:
            caller.request_approval = consent
        return caller

    def swap(self) -> None:
        self.docs.rename(self.aside)
        self.docs.symlink_to(self.outside)

    def swap_back(self) -> None:
        self.docs.unlink()
        self.aside.rename(self.docs)

    def outside_is_whole(self) -> None:
        assert sorted(path.name for path in self.outside.iterdir()) == ["a.ipynb", "a.txt"]
        assert (self.outside / "a.txt").read_text(encoding="utf-8") == f"{_HIDDEN}\n"
        assert _HIDDEN in (self.outside / "a.ipynb").read_text(encoding="utf-8")


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


async def make(caller: ToolExecutor, name: str, **given: Any) -> ToolResult:
    call = {"type": "tool_use", "id": "toolu_1", "name": name, "input": given}
    return (await caller.execute(call))[0]


_CALLS = [
    ("Read", {"file_path": "docs/a.txt"}),
    ("Read", {"file_path": "docs/a.ipynb"}),
    ("Glob", {"pattern": "docs/*"}),
    ("Glob", {"pattern": "*", "path": "docs"}),
    ("Grep", {"pattern": "e", "path": "docs", "output_mode": "content"}),
    ("Grep", {"pattern": "e", "path": "docs/a.txt", "output_mode": "content"}),
    ("Write", {"file_path": "docs/a.txt", "content": "evil\n"}),
    ("Write", {"file_path": "docs/new.txt", "content": "evil\n"}),
    ("Write", {"file_path": "docs/deep/new.txt", "content": "evil\n"}),
    ("Edit", {"file_path": "docs/a.txt", "old_string": "e", "new_string": "evil"}),
    ("Edit", {"file_path": "docs/new.txt", "old_string": "", "new_string": "evil"}),
    ("MultiEdit", {"file_path": "docs/a.txt", "edits": [{"old_string": "e", "new_string": "evil"}]}),
    ("NotebookEdit", {"notebook_path": "docs/a.ipynb", "cell_id": "cell-0", "new_source": "evil"}),
]


@pytest.mark.parametrize(("name", "given"), _CALLS)
def test_a_link_that_comes_after_the_consent_is_not_followed(house: House, name: str, given: dict[str, Any]) -> None:
    async def agree(_call: Block, _decision: Decision) -> Approval:
        house.swap()
        return Approval(granted=True)

    async def play() -> ToolResult:
        caller = house.caller(agree, ask=(name,))
        for path in ("docs/a.txt", "docs/a.ipynb"):
            plain = house.caller()
            assert not (await make(plain, "Read", file_path=path)).is_error
        return await make(caller, name, **given)

    outcome = asyncio.run(play())
    assert _HIDDEN not in str(outcome)
    house.outside_is_whole()
    if "pattern" not in given or "path" in given:
        assert outcome.is_error
        assert "resolves to a different file" in str(outcome.content)
    assert house.context.approved_paths == {}


@pytest.mark.parametrize(("name", "given"), [pair for pair in _CALLS if pair[0] not in {"Read", "Glob", "Grep"}])
def test_a_link_that_comes_at_the_last_moment_is_not_written_through(
    house: House, name: str, given: dict[str, Any]
) -> None:
    async def play() -> ToolResult:
        caller = house.caller(mode="acceptEdits")
        for path in ("docs/a.txt", "docs/a.ipynb"):
            assert not (await make(caller, "Read", file_path=path)).is_error
        house.context.before_change = lambda _path: house.swap()
        return await make(caller, name, **given)

    assert asyncio.run(play()).is_error
    house.outside_is_whole()


def _insist(house: House, step: Callable[[], object]) -> None:
    """Do it even if a writer has made the folder anew this moment."""
    while True:
        try:
            step()
        except OSError:
            shutil.rmtree(house.docs, ignore_errors=True)
        else:
            return


def _raced(house: House, rounds: int) -> tuple[int, int]:
    """Read and write while somebody exchanges folder and link without end."""
    stop = threading.Event()
    done = failed = 0

    def swapping() -> None:
        while not stop.is_set():
            house.docs.rename(house.aside)
            _insist(house, lambda: house.docs.symlink_to(house.outside))
            house.docs.unlink()
            _insist(house, lambda: house.aside.rename(house.docs))

    async def play() -> None:
        nonlocal done, failed
        caller = house.caller(mode="acceptEdits")
        for number in range(rounds):
            read = await make(caller, "Read", file_path="docs/a.txt")
            assert _HIDDEN not in str(read)
            if number % 10 == 0:
                found = await make(caller, "Grep", pattern=".", path="docs", output_mode="content")
                assert _HIDDEN not in str(found)
            content = f"{number}\n"
            wrote = await make(caller, "Write", file_path=f"docs/x/{number}.txt", content=content)
            done += not wrote.is_error
            failed += wrote.is_error

    thread = threading.Thread(target=swapping)
    thread.start()
    try:
        asyncio.run(play())
    finally:
        stop.set()
        thread.join()
    return done, failed


def test_nobody_wins_the_race_between_the_look_and_the_opening(house: House) -> None:
    done, failed = _raced(house, 150)
    house.outside_is_whole()
    assert done + failed == 150


@pytest.mark.faults
@pytest.mark.timeout(0)
def test_nobody_wins_the_race_in_ten_thousand_tries(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    tries = sized(10_000, least=500)
    done, failed = _raced(house, tries)
    house.outside_is_whole()
    assert min(done, failed) > 0
    with capsys.disabled():
        said = f"{done:,} written, {failed:,} refused, none outside"
        sys.stdout.write(f"\n{tries:,} reads and writes raced: {said}\n")


def test_what_the_user_changes_in_a_call_is_judged_as_well(house: House) -> None:
    (house.project / ".env").write_text("KEY=1\n", encoding="utf-8")

    async def other(_call: Block, _decision: Decision) -> Approval:
        return Approval(granted=True, tool_input={"file_path": ".env"})

    caller = house.caller(other, ask=("Read(docs/**)",), deny=("Read(.env)",))
    outcome = asyncio.run(make(caller, "Read", file_path="docs/a.txt"))
    assert outcome.is_error
    assert "Read(.env)" in str(outcome.content)


def test_searches_leave_out_what_may_not_be_read(house: House) -> None:
    secrets = house.project / "secrets"
    (secrets / "deep").mkdir(parents=True)
    (house.project / ".ssh").mkdir()
    for path in (secrets / "key", secrets / "deep" / "key", house.project / ".env"):
        path.write_text("plain words\n", encoding="utf-8")
    (house.project / ".ssh" / "id").write_text("plain words\n", encoding="utf-8")
    (house.project / "docs" / "link").symlink_to(secrets / "key")

    async def play() -> None:
        caller = house.caller(deny=("Read(./secrets/**)", "Read(.env)"))
        found = await make(caller, "Glob", pattern="**/*")
        assert sorted(found.detail["filenames"]) == ["docs/a.ipynb", "docs/a.txt"]
        for mode in ("content", "files_with_matches", "count"):
            found = await make(caller, "Grep", pattern="plain words", output_mode=mode)
            assert "docs/a.txt" in str(found.content), mode
            for hidden in ("secrets", ".env", ".ssh", "link"):
                assert hidden not in str(found), mode
        denied = await make(caller, "Grep", pattern="x", path="secrets")
        assert denied.is_error
        assert "denied by rule" in str(denied.content)

    asyncio.run(play())


def test_what_was_consented_to_outside_is_shown(house: House) -> None:
    async def agree(_call: Block, _decision: Decision) -> Approval:
        return Approval(granted=True)

    async def play() -> None:
        caller = house.caller(agree, deny=("Read(//**/*.ipynb)",))
        found = await make(caller, "Glob", pattern="*", path=str(house.outside))
        assert found.detail["filenames"] == [str(house.outside / "a.txt")]

    asyncio.run(play())


def test_the_home_folder_is_not_taken_for_a_folder_of_the_project(house: House) -> None:
    home = Path(house.context.env["HOME"])
    home.mkdir()
    (home / "notes").write_text(_HIDDEN, encoding="utf-8")
    asked: list[str] = []

    async def note(_call: Block, decision: Decision) -> Approval:
        asked.append(decision.reason)
        return Approval(granted=False, message="no")

    async def play() -> None:
        caller = house.caller(note, mode="acceptEdits")
        for name, given in (
            ("Read", {"file_path": "~/notes"}),
            ("Grep", {"pattern": "x", "path": "~"}),
            ("Glob", {"pattern": "~/*"}),
            ("Glob", {"pattern": "*", "path": "~/"}),
            ("Write", {"file_path": "~/new", "content": "x"}),
            ("Edit", {"file_path": "~/notes", "old_string": "x", "new_string": "y"}),
        ):
            outcome = await make(caller, name, **given)
            assert outcome.is_error, name
            assert _HIDDEN not in str(outcome), name

    asyncio.run(play())
    assert len(asked) == 6
    assert all("outside the working directories" in reason for reason in asked)
