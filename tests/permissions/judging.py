"""Shared by the tests of the guard: a project folder and a guard over it."""

import os
from pathlib import Path

from steno.permissions.permission_checker import PermissionChecker
from steno.permissions.permission_rules import Decision, PermissionMode, RuleSource, parse_rules


class Judging:
    """A project, and what a guard says of calls in it."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "proj"
        (self.project / "src").mkdir(parents=True)
        (self.project / ".git").mkdir()
        (self.project / "src" / "a.py").write_text("a\n", encoding="utf-8")

    def guard(
        self, *allow: str, ask: tuple[str, ...] = (), deny: tuple[str, ...] = (), mode: PermissionMode = "default"
    ) -> PermissionChecker:
        cwd = str(self.project)
        layer = RuleSource(allow, ask, deny)
        rules = parse_rules([layer], root=cwd, cwd=cwd, home=os.environ["HOME"])
        return PermissionChecker(rules, mode, cwd, (cwd,))

    def bash(self, command: str, guard: PermissionChecker) -> Decision:
        return guard.judge("Bash", {"command": command}, cwd=str(self.project))

    def file(self, tool: str, path: str | Path, guard: PermissionChecker) -> Decision:
        return guard.judge(tool, {"file_path": str(path)}, cwd=str(self.project))
