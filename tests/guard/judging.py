"""Shared by the tests of the guard: a project folder and a guard over it."""

import os
from pathlib import Path

from steno.guard.decision import Decision, Mode
from steno.guard.judge import Guard
from steno.guard.rules import Layer, gather


class Judging:
    """A project, and what a guard says of calls in it."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "proj"
        (self.project / "src").mkdir(parents=True)
        (self.project / ".git").mkdir()
        (self.project / "src" / "a.py").write_text("a\n", encoding="utf-8")

    def guard(
        self,
        *allow: str,
        ask: tuple[str, ...] = (),
        deny: tuple[str, ...] = (),
        mode: Mode = "default",
    ) -> Guard:
        cwd = str(self.project)
        layer = Layer(allow, ask, deny)
        rules = gather([layer], root=cwd, cwd=cwd, home=os.environ["HOME"])
        return Guard(rules, mode, cwd, (cwd,))

    def bash(self, command: str, guard: Guard) -> Decision:
        return guard.judge("Bash", {"command": command}, cwd=str(self.project))

    def file(self, tool: str, path: str | Path, guard: Guard) -> Decision:
        return guard.judge(tool, {"file_path": str(path)}, cwd=str(self.project))
