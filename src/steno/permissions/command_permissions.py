"""Decides whether a shell command may run: every simple command in it must be allowed."""

import os
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from steno.format.tool_catalogue import SHELL
from steno.permissions.file_permissions import FilePermissions
from steno.permissions.git_repository import git_reach_outside
from steno.permissions.paths import STANDARD_DEVICES, ResolvedPath, holds_protected, is_inside, why_protected
from steno.permissions.permission_rules import (
    CommandPattern,
    Decision,
    Isolation,
    PermissionMode,
    PermissionRule,
    RuleKind,
    RuleSet,
)
from steno.permissions.shell.command import (
    INNER_SPACE,
    UNKNOWN_PART,
    Command,
    Word,
    is_harmless_prefix,
    is_harmless_variable,
    literal_word,
    word_set,
)
from steno.permissions.shell.command_paths import (
    RunFolders,
    bundled_values,
    exposed_content,
    file_redirections,
    files_below,
    find_run_folders,
    is_plain_file,
    is_process_path,
    path_candidates,
    path_parts,
    possible_rule_texts,
    rule_texts,
)
from steno.permissions.shell.dangerous_options import DANGEROUS_OPTIONS
from steno.permissions.shell.fixed_commands import fixed_paths
from steno.permissions.shell.nested_commands import program_name
from steno.permissions.shell.option_effects import why_void
from steno.permissions.shell.parser import ParsedScript, parse_script
from steno.permissions.shell.read_only_commands import READ_ONLY_PROGRAMS, ReadAccess, find_repository, read_access

# Commands that acceptEdits mode allows, with the option letters they may have.
_EDIT_COMMAND_OPTIONS: Final[Mapping[str, str]] = {
    "mkdir": "pv",
    "touch": "acm",
    "rm": "rRfivd",
    "rmdir": "pv",
    "cp": "fnvpuT",
    "mv": "fnvuT",
}
_SOURCE_AND_TARGET: Final = frozenset({"cp", "mv"})
# Commands without an option or operand that names a file to write.
_NEVER_WRITE: Final = word_set(
    "cd cat head tail wc nl tac rev cut tr grep egrep fgrep comm cmp diff paste join fold od ls stat du"
    " echo printf basename dirname realpath readlink md5sum sha1sum sha256sum true false test ["
)


TEXT_ONLY_PROGRAMS: Final = frozenset(name for name, plain in READ_ONLY_PROGRAMS.items() if plain.operands == "text")
"""Programs whose operands are text, not files."""


class DeniedFiles(msgspec.Struct, frozen=True):
    """Checks commands against rules that deny files."""

    rules: RuleSet
    files: FilePermissions

    def check_named_paths(self, parsed_script: ParsedScript, run_folders: RunFolders) -> Decision | None:
        """Check the paths in commands against deny rules."""
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
                    possible_decision = Decision("ask", "a deny rule for files may apply")
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
            return Decision("deny", f"denied by rule {rule.text}", rule.text)
        if any(self.files.has_denied_hard_link(resolved_path, tool) for tool in tools):
            return Decision("deny", f"{resolved_path.path} is a hard link to a file that a rule denies")
        return None

    def _check_word_parts(self, command: Command, run_folders: RunFolders, tools: list[str]) -> Decision | None:
        """Ask if part of a word names a denied file, as in `git show HEAD:.env`."""
        for word in command.words[1:]:
            for piece in (*path_parts(word), *bundled_values(word)):
                for resolved_path in run_folders.resolve(piece) or ():
                    rule = self.files.denying_path_rule(resolved_path, *tools)
                    if rule is not None:
                        reason = f"`{word.text}` may name a file that {rule.text} denies"
                        return Decision("ask", reason)
        return None

    def check_exposed_content(self, command: Command, run_folders: RunFolders) -> str:
        """Return why a command may show a denied file without naming it, or an empty string."""
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
                    return f"`{name}` reads a directory with a file that {rules_with_paths[0].text} denies"
        return ""

    def _contains_denied(self, resolved_path: ResolvedPath) -> bool:
        """Whether a directory contains a file that must not be read, or too many files to check."""
        if not os.path.isdir(resolved_path.real):
            return False
        return any(
            below is None or self.files.denying_path_rule(below, "Read") is not None
            for below in files_below(resolved_path.real)
        )


class CommandPermissions(msgspec.Struct, frozen=True):
    """Decides about shell commands."""

    rules: RuleSet
    mode: PermissionMode
    folders: tuple[str, ...]
    files: FilePermissions
    home: str
    """The directory that bash expands `~` to."""
    read_only: frozenset[str] | None = None
    """The read-only programs that may run without a rule; None for all known ones."""
    can_sandbox: bool = True
    """Whether commands can be sandboxed; if not, only fixed commands run without approval."""

    def decide(self, script: str, cwd: str) -> Decision:
        """Decide whether a script may run in a directory."""
        parsed_script = parse_script(script)
        run_folders = find_run_folders(parsed_script, cwd, self.home)
        path_decision = self._deny_or_ask("deny", parsed_script, script)
        path_decision = path_decision or DeniedFiles(self.rules, self.files).check_named_paths(
            parsed_script, run_folders
        )
        if path_decision is not None and path_decision.verdict == "deny":
            return path_decision
        ask_decision = self._deny_or_ask("ask", parsed_script, script) or path_decision
        if ask_decision is not None:
            return Decision("ask", ask_decision.reason, ask_decision.rule)
        approval = self._blanket_approval()
        if parsed_script.trouble:
            deny_rules = [*self.rules.for_tool("deny", SHELL), *self.files.rules.for_tool("deny", "Read")]
            deny_rules += self.files.rules.for_tool("deny", "Edit")
            if approval is not None and not deny_rules:
                return self._check_files(parsed_script, run_folders) or approval
            return Decision("ask", f"cannot parse the command: {parsed_script.trouble}")
        if not tuple(parsed_script.all_commands()) and not parsed_script.tests:
            return Decision("ask", "the command is empty")
        return self._decide_each(parsed_script, run_folders, approval)

    def commands_without_rule(self, script: str, cwd: str) -> list[Command]:
        """Return the commands that need a rule, to suggest rules for them."""
        parsed_script = parse_script(script)
        run_folders = find_run_folders(parsed_script, cwd, self.home)
        if parsed_script.trouble:
            return []
        # Next to a command with a rule, a read-only command is not sandboxed and needs a rule as well.
        return [
            command
            for command in parsed_script.commands
            if self._why_not_allowed(command, run_folders)
            or (self._lacks_rule(command, run_folders) and not self._is_fixed_command(command, run_folders))
        ]

    def _decide_each(self, parsed_script: ParsedScript, run_folders: RunFolders, approval: Decision | None) -> Decision:
        refusal = self._check_files(parsed_script, run_folders)
        if refusal is not None:
            return refusal
        if approval is not None:
            opaque_commands = [
                candidate
                for candidate in parsed_script.all_commands()
                if candidate.sealed and not _runs_only_own_code(candidate)
            ]
            if opaque_commands and self.rules.for_tool("deny", SHELL):
                return Decision("ask", f"a deny rule may apply: {opaque_commands[0].sealed}")
            return approval
        moves = [each for each in parsed_script.all_commands() if program_name(each.program) == "mv"]
        for command in parsed_script.commands:
            denial_reason = self._why_not_allowed(command, run_folders)
            if denial_reason:
                return Decision("ask", denial_reason)
        if moves and len(parsed_script.commands) > 1 and not all(map(self._allowing_rule, parsed_script.commands)):
            return Decision("ask", "moves files, so later paths may refer to other files")
        isolation = self._isolation(parsed_script, run_folders)
        if isolation is None:
            return Decision("ask", self._why_not_sandboxed(parsed_script, run_folders))
        allowing_rules = [rule for each in parsed_script.commands for rule in self._allowing_rules(each)]
        if allowing_rules:
            rules = sorted({rule.text for rule in allowing_rules})
            # In a wrapper such as `timeout 5`, the command is not exactly the one in the rule.
            all_named = all(self._allowing_rule(each) for each in parsed_script.commands if each.transparent)
            exact = all_named and not any(rule.command and rule.command.has_wildcard for rule in allowing_rules)
            reason = f"allowed by {', '.join(rules)}"
            return Decision("allow", reason, rules[0], isolation=isolation, exact=exact)
        phrase = "edits only" if isolation == "edit" else "reads only"
        return Decision("allow", f"{phrase} inside the working directories", isolation=isolation)

    # Isolation

    def _isolation(self, parsed_script: ParsedScript, run_folders: RunFolders) -> Isolation | None:
        """Return how an allowed script runs; None if it needs approval after all.

        A script runs as one process. A command that a rule allows is not sandboxed, so it must not run next to a
        command that is only safe in the sandbox.
        """
        commands = tuple(parsed_script.commands)
        without_rule = [candidate for candidate in commands if self._lacks_rule(candidate, run_folders)]
        writes = any(each.writes for command in parsed_script.all_commands() for each in file_redirections(command))
        if self.can_sandbox and any(self._reads_without_rule(each, run_folders) for each in commands):
            # Read-only git commands stay sandboxed even with a rule: git settings can name other files.
            limited = [each for each in commands if each in without_rule or self._reads_without_rule(each, run_folders)]
            without_rule = limited if len(limited) == len(commands) else without_rule
        if commands and not without_rule and not writes:
            return None if self._may_show_denied(commands[1:]) else ""
        if len(without_rule) == len(commands) and self.can_sandbox:
            has_edits = writes or any(self._only_edits(each, run_folders) for each in parsed_script.all_commands())
            if has_edits and not all(
                self._writes_only_checked_files(each, run_folders) for each in parsed_script.all_commands()
            ):
                return None
            return "edit" if has_edits else "read"
        if writes and without_rule:
            return None
        if not all(self._is_fixed_command(each, run_folders) for each in without_rule):
            return None
        first_allowed = next((index for index, each in enumerate(commands) if each not in without_rule), 0)
        later = [each for each in commands[first_allowed:] if each in without_rule]
        if len(without_rule) == len(commands):
            return "fixed" if not writes else None
        if any(map(_opens_files, later)) or self._may_show_denied(commands[first_allowed + 1 :]):
            return None
        return ""

    def _lacks_rule(self, command: Command, run_folders: RunFolders) -> bool:
        """Whether no rule names a command, or a command nested in it."""
        if not command.words:
            return True
        rule = self._allowing_rule(command)
        if rule is not None and rule.command is not None and rule.command.named > command.reach:
            return False
        if rule is None and not (command.transparent and command.inner):
            return True
        return any(self._lacks_rule(inner, run_folders) for inner in command.inner)

    def _may_show_denied(self, later: tuple[Command, ...]) -> bool:
        """Whether read-only commands may show a denied file that an earlier command moved or linked."""
        if not self.rules.for_tool("deny", "Read"):
            return False
        return any(_is_read_only_program(candidate) and _opens_files(candidate) for candidate in later)

    def _reads_without_rule(self, command: Command, run_folders: RunFolders) -> bool:
        """Whether a git command that a wildcard rule allows would also be allowed without it."""
        rule = self._allowing_rule(command)
        if rule is None and command.transparent and command.inner:
            return all(self._reads_without_rule(inner, run_folders) for inner in command.inner)
        if command.program != "git" or rule is None or rule.command is None:
            return False
        return rule.command.has_wildcard and not command.inner and self._only_reads(command, run_folders)

    def _writes_only_checked_files(self, command: Command, run_folders: RunFolders) -> bool:
        """Whether a command writes no files except those that were checked."""
        if not command.words or command.program in _NEVER_WRITE or self._only_edits(command, run_folders):
            return True
        if read_access(command) is not None or command.inner:
            return True
        is_literal = all(word.literal for word in command.words)
        return is_literal and command.program in {"sed", "awk"} and self._read_access(command) is not None

    def _is_fixed_command(self, command: Command, run_folders: RunFolders) -> bool:
        """Whether a command is a fixed command and reads only permitted files."""
        if not command.words:
            # An assignment; commands in its value are checked separately.
            return True
        if command.transparent and command.inner:
            return all(self._is_fixed_command(inner, run_folders) for inner in command.inner)
        if command.program == "cd":
            return self._only_reads(command, run_folders)
        paths_and_folders = fixed_paths(command)
        if paths_and_folders is None:
            return False
        words, folders = paths_and_folders
        for word in words or ((literal_word("."),) if folders else ()):
            resolved_paths = run_folders.resolve(word)
            if resolved_paths is None or any(
                self.files.decide_read(candidate).verdict != "allow" for candidate in resolved_paths
            ):
                return False
            if not all(is_plain_file(resolved_path.real, folders=folders) for resolved_path in resolved_paths):
                return False
        return not run_folders.lost or not words

    def _why_not_sandboxed(self, parsed_script: ParsedScript, run_folders: RunFolders) -> str:
        """Return why a read-only script needs approval."""
        command_text = next(
            (
                command.text_with_assignments.replace(INNER_SPACE, " ").replace(UNKNOWN_PART, "…")
                for command in parsed_script.commands
                if self._lacks_rule(command, run_folders) and not self._is_fixed_command(command, run_folders)
            ),
            "",
        )
        all_without_rule = all(self._lacks_rule(each, run_folders) for each in parsed_script.commands)
        if not command_text and not all_without_rule:
            return "a command that a rule allows may change files that another command reads"
        if not self.can_sandbox:
            phrase = f"`{command_text}` needs" if command_text else "writing a file needs"
            return f"{phrase} approval because no sandbox is available"
        if all_without_rule:
            return "writes a file, and a command in the script may write other files"
        return f"no rule allows `{command_text}`, and it cannot be sandboxed together with a command that a rule allows"

    # Rules

    def _blanket_approval(self) -> Decision | None:
        """Return the decision if the mode or a rule allows all commands."""
        if self.mode == "bypassPermissions":
            return Decision("allow", "permissions are bypassed", exact=True)
        unconditional_rule = next((rule for rule in self.rules.for_tool("allow", SHELL) if rule.covers_all_calls), None)
        if unconditional_rule is None or self.mode == "plan":
            return None
        return Decision("allow", f"allowed by rule {unconditional_rule.text}", unconditional_rule.text, exact=True)

    def _deny_or_ask(self, kind: RuleKind, parsed_script: ParsedScript, script: str) -> Decision | None:
        """Return the decision of deny or ask rules; a possible match needs approval."""
        possible_decision: Decision | None = None
        for rule in self.rules.for_tool(kind, SHELL):
            if rule.command is None:
                return Decision(kind, _RULE_REASONS[kind].format(rule=rule.text), rule.text)
            if rule.command.matches(script):
                return Decision(kind, _RULE_REASONS[kind].format(rule=rule.text), rule.text)
            for command in parsed_script.all_commands():
                texts = tuple(rule_texts(command))
                if any(map(rule.command.matches, texts)):
                    return Decision(kind, _RULE_REASONS[kind].format(rule=rule.text), rule.text)
                if possible_decision is None and any(map(rule.command.matches, possible_rule_texts(command))):
                    reason = f"rule {rule.text} may apply: options precede the words that the rule names"
                    possible_decision = Decision("ask", reason, rule.text)
                if possible_decision is None and any(map(rule.command.may_match, texts)):
                    reason = f"rule {rule.text} may apply: the command depends on a variable"
                    possible_decision = Decision("ask", reason, rule.text)
        return possible_decision

    def _allowing_rule(self, command: Command) -> PermissionRule | None:
        """Return the rule that allows a command, including the commands nested in it."""
        return self._match_allow_rules(command)[0]

    def _allowing_rules(self, command: Command) -> Iterator[PermissionRule]:
        """Yield the rules that allow a command, or the commands inside a transparent one."""
        rule = self._allowing_rule(command)
        if rule is not None:
            yield rule
        elif command.transparent:
            for inner in command.inner:
                yield from self._allowing_rules(inner)

    def _match_allow_rules(self, command: Command) -> tuple[PermissionRule | None, str]:
        """Return the rule that allows a command, or the reason why a matching rule does not apply."""
        if self.mode == "plan" or not command.words:
            return None, ""
        is_harmless = all(is_harmless_prefix(assignment.name) for assignment in command.assignments)
        assignments = () if is_harmless else command.assignments
        assignment_count = len(assignments)
        texts = [f"{each.name}={each.value.escaped_text}" for each in assignments]
        texts += [word.escaped_text for word in command.words]
        matching_rule: PermissionRule | None = None
        void_reason = ""
        for rule in self.rules.for_tool("allow", SHELL):
            named_lengths = rule.command.wildcard_words(texts) if rule.command is not None else None
            if rule.command is None or named_lengths is None:
                continue
            literal_words = rule.command.named - assignment_count
            reason = self._why_void(command, named_lengths, assignment_count, rule.command)
            if reason:
                void_reason = void_reason or reason
            elif literal_words > command.reach:
                return rule, ""
            elif rule.command.named > 0 and not command.sealed:
                matching_rule = rule
        return matching_rule, void_reason if matching_rule is None else ""

    def _why_void(
        self, command: Command, named_lengths: Mapping[int, int], assignment_count: int, pattern: CommandPattern
    ) -> str:
        """Return why a rule does not allow the words that its `*` matches; empty if it does."""
        if not pattern.has_wildcard:
            return ""
        if any(place < assignment_count for place in named_lengths):
            return f"sets {command.assignments[0].name}, which the rule does not name"
        word_lengths = {place - assignment_count: length for place, length in named_lengths.items()}
        return why_void(command, word_lengths, pattern.named - assignment_count)

    def _why_not_allowed(self, command: Command, run_folders: RunFolders) -> str:
        """Return why a command is not allowed; empty if it is."""
        command_text = command.text_with_assignments.replace(INNER_SPACE, " ").replace(UNKNOWN_PART, "…")
        if not command.words:
            variable = next(
                (assignment.name for assignment in command.assignments if not is_harmless_variable(assignment.name)), ""
            )
            return f"sets {variable}, which affects other commands" if variable else ""
        rule, void_reason = self._match_allow_rules(command)
        if rule is not None and rule.command is not None and rule.command.has_wildcard:
            exposure = DeniedFiles(self.rules, self.files).check_exposed_content(command, run_folders)
            exposure = exposure or git_reach_outside(command, run_folders, self.folders)
            if exposure:
                return exposure
        if rule is not None and rule.command is not None and rule.command.named > command.reach:
            return ""
        if void_reason and not self._only_reads(command, run_folders):
            return void_reason
        if command.sealed:
            return f"cannot determine what `{command_text}` runs: {command.sealed}"
        harmless_assignments = all(is_harmless_prefix(each.name) for each in command.assignments)
        is_allowed = (
            rule is not None
            or (harmless_assignments and (command.transparent or self._only_reads(command, run_folders)))
            or (harmless_assignments and self._only_edits(command, run_folders))
        )
        if not is_allowed:
            return f"no rule allows `{command_text}`"
        for inner in command.inner:
            reason = self._why_not_allowed(inner, run_folders)
            if reason:
                return reason
        return ""

    # Files

    def _check_files(self, parsed_script: ParsedScript, run_folders: RunFolders) -> Decision | None:
        """Return the decision about the files in redirections and operands of commands."""
        files = self.files
        if self._blanket_approval() is not None:
            # Everything that is not denied or protected is allowed then.
            files = msgspec.structs.replace(files, mode="bypassPermissions")
        for command in parsed_script.all_commands():
            refusal = self._check_redirections(command, run_folders, files) or self._check_protected_paths(
                command, run_folders
            )
            if refusal is not None:
                return refusal
        return None

    def _check_redirections(self, command: Command, run_folders: RunFolders, files: FilePermissions) -> Decision | None:
        for redirection in command.redirections:
            resolved_paths = run_folders.resolve(redirection.target)
            if resolved_paths is None and files.mode == "bypassPermissions" and not files.has_deny_rules():
                continue
            if resolved_paths is None:
                return Decision("ask", "redirects to or from a path that depends on a variable")
            for resolved_path in resolved_paths:
                if resolved_path.path in STANDARD_DEVICES:
                    continue
                decision = files.decide_write(resolved_path) if redirection.writes else files.decide_read(resolved_path)
                if decision.verdict != "allow":
                    return decision
        return None

    def _check_protected_paths(self, command: Command, run_folders: RunFolders) -> Decision | None:
        """Ask if a protected path is passed to a command that does more than read."""
        if command.program in TEXT_ONLY_PROGRAMS or self._read_access(command) is not None:
            return None
        for word in path_candidates(command):
            for resolved_path in run_folders.resolve(word) or ():
                protected_reason = why_protected(resolved_path)
                if protected_reason:
                    reason = f"{resolved_path.path} is protected: {protected_reason}"
                    return Decision("ask", reason)
        return None

    def _only_reads(self, command: Command, run_folders: RunFolders) -> bool:
        """Whether a command only reads, and only permitted files."""
        if self.read_only is not None and command.program not in self.read_only:
            return False
        if command.program == "cd":
            return not run_folders.lost and all(
                is_inside(ResolvedPath.of(folder), self.folders) for folder in run_folders.all
            )
        access = self._read_access(command)
        if access is None:
            return False
        if access.deep and self.files.has_read_rules() and not self._is_limited_by_sandbox(command):
            return False
        if command.program == "git" and len(set(map(find_repository, run_folders.all))) != 1:
            return False
        if command.program == "git" and find_repository(run_folders.all[0]) == "?":
            return False
        if run_folders.lost and command.program not in TEXT_ONLY_PROGRAMS and not access.paths:
            return False
        for word in access.paths:
            resolved_paths = run_folders.resolve(word)
            if resolved_paths is None or any(
                self.files.decide_read(candidate).verdict != "allow" for candidate in resolved_paths
            ):
                return False
        return True

    def _read_access(self, command: Command) -> ReadAccess | None:
        return read_access(command, sandboxed=self.can_sandbox)

    def _is_limited_by_sandbox(self, command: Command) -> bool:
        """Whether the sandbox keeps a command from reading denied files.

        It hides the files, but not their committed content in git.
        """
        return self.can_sandbox and command.program != "git"

    def _only_edits(self, command: Command, run_folders: RunFolders) -> bool:
        """Whether a command only creates, moves or removes files that may be edited."""
        letters = _EDIT_COMMAND_OPTIONS.get(command.program)
        if self.mode != "acceptEdits" or letters is None or command.inner:
            return False
        options = [word for word in command.words[1:] if word.text.startswith("-")]
        if any(set(word.text[1:]) - set(letters) for word in options):
            return False
        targets = [word for word in command.words[1:] if word not in options]
        if command.program in _SOURCE_AND_TARGET and len(targets) > 1:
            # If the destination is a directory, each source gets a path inside it.
            destination = targets[-1]
            for source in targets[:-1]:
                name = source.text.rstrip("/").rsplit("/", 1)[-1]
                targets.append(Word(f"{destination.text}/{name}", tilde=destination.tilde))
        return bool(targets) and all(self._may_edit(word, command, run_folders) for word in targets)

    def _may_edit(self, word: Word, command: Command, run_folders: RunFolders) -> bool:
        resolved_paths = run_folders.resolve(word)
        if resolved_paths is None:
            return False
        for resolved_path in resolved_paths:
            if self.files.decide_write(resolved_path).verdict != "allow" or not is_inside(resolved_path, self.folders):
                return False
            if command.program in {"rm", "rmdir", "mv"} and (
                holds_protected(resolved_path, self.folders) or os.path.islink(resolved_path.path)
            ):
                return False
        return True


def _is_read_only_program(command: Command) -> bool:
    """Whether a command, or the one it wraps, is a known read-only program."""
    if command.transparent and command.inner:
        return any(map(_is_read_only_program, command.inner))
    return program_name(command.program) in READ_ONLY_PROGRAMS


def _opens_files(command: Command) -> bool:
    """Whether a read-only command opens files or directories, which may change after the check."""
    if any(not redirection.writes for redirection in file_redirections(command)) or command.program == "cd":
        return True
    if command.transparent and command.inner:
        return any(map(_opens_files, command.inner))
    paths_and_folders = fixed_paths(command)
    if paths_and_folders is None:
        return any(not word.text.startswith("-") for word in command.words[1:])
    return bool(paths_and_folders[0])


_RULE_REASONS: Final[Mapping[RuleKind, str]] = {
    "deny": "denied by rule {rule}",
    "ask": "rule {rule} requires approval",
    "allow": "allowed by rule {rule}",
}


def _runs_only_own_code(command: Command) -> bool:
    """Whether a program runs only its own code and subcommands."""
    return program_name(command.program) in DANGEROUS_OPTIONS
