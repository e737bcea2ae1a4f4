"""Checks the files that commands name or show against rules that deny them."""

import os
from typing import Final

import msgspec

from steno.permissions.file_permissions import FilePermissions
from steno.permissions.paths import ResolvedPath
from steno.permissions.permission_rules import Decision, RuleSet
from steno.permissions.shell.command import Command
from steno.permissions.shell.command_paths import (
    RunFolders,
    bundled_values,
    exposed_content,
    files_below,
    is_process_path,
    path_candidates,
    path_parts,
)
from steno.permissions.shell.parser import ParsedScript
from steno.permissions.shell.read_only_commands import READ_ONLY_PROGRAMS

TEXT_ONLY_PROGRAMS: Final = frozenset(name for name, plain in READ_ONLY_PROGRAMS.items() if plain.operands == "text")
"""Programs whose words are only words."""


class DeniedFiles(msgspec.Struct, frozen=True):
    """The files that rules deny, by the commands that name or show them."""

    rules: RuleSet
    files: FilePermissions

    def check_named_paths(self, parsed_script: ParsedScript, run_folders: RunFolders) -> Decision | None:
        """Hold the words of commands against rules that forbid files."""
        tools = [tool for tool in ("Read", "Edit") if self.rules.for_tool("deny", tool)]
        if not tools:
            return None
        possible_decision: Decision | None = None
        for command in parsed_script.all_commands():
            if command.program in TEXT_ONLY_PROGRAMS or not command.words:
                continue
            for word in path_candidates(command):
                resolved_paths = run_folders.resolve(word)
                if resolved_paths is None or any(
                    is_process_path(resolved_path.path) for resolved_path in resolved_paths
                ):
                    possible_decision = Decision("ask", "a rule that forbids files may be about it")
                    continue
                decision = next(
                    filter(None, (self._check_path(candidate, tools) for candidate in resolved_paths)), None
                )
                if decision is not None:
                    return decision
            if possible_decision is None:
                possible_decision = self._check_word_parts(command, run_folders, tools)
        return possible_decision

    def _check_path(self, resolved_path: ResolvedPath, tools: list[str]) -> Decision | None:
        rule = self.files.denying_path_rule(resolved_path, *tools)
        if rule is not None:
            return Decision("deny", f"the rule {rule.text} forbids it", rule.text)
        if any(self.files.has_denied_hard_link(resolved_path, tool) for tool in tools):
            return Decision("deny", f"{resolved_path.path} is the same file as one that a rule denies")
        return None

    def _check_word_parts(self, command: Command, run_folders: RunFolders, tools: list[str]) -> Decision | None:
        """Ask where a part of a word names a file that a rule denies: `git show HEAD:.env`."""
        for word in command.words[1:]:
            for piece in (*path_parts(word), *bundled_values(word)):
                for resolved_path in run_folders.resolve(piece) or ():
                    rule = self.files.denying_path_rule(resolved_path, *tools)
                    if rule is not None:
                        reason = f"`{word.text}` may name a file that {rule.text} denies"
                        return Decision("ask", reason)
        return None

    def check_exposed_content(self, command: Command, run_folders: RunFolders) -> str:
        """Say which denied file a command may show without being given its name."""
        rules_with_paths = [
            deny_rule for deny_rule in self.rules.for_tool("deny", "Read") if not deny_rule.covers_all_calls
        ]
        if not rules_with_paths:
            return ""
        for inner_command in (command, *command.inner):
            exposed = exposed_content(inner_command)
            name = " ".join(word.text for word in inner_command.words[:2])
            if exposed.everything:
                return f"`{name}` may show a file that {rules_with_paths[0].text} denies"
            for folder in exposed.folders:
                resolved_paths = run_folders.resolve(folder)
                if resolved_paths is None or any(map(self._contains_denied, resolved_paths)):
                    return f"`{name}` reads a folder with a file that {rules_with_paths[0].text} denies"
        return ""

    def _contains_denied(self, resolved_path: ResolvedPath) -> bool:
        """Whether a folder has a file in it that must not be read, or too many files to look."""
        if not os.path.isdir(resolved_path.real):
            return False
        return any(
            below is None or self.files.denying_path_rule(below, "Read") is not None
            for below in files_below(resolved_path.real)
        )
