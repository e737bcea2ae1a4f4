"""Whether a shell command may run: every simple command in it must be allowed on its own."""

import os
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from steno.format.tool_catalogue import SHELL
from steno.guard.command_words import (
    DEVICES,
    file_redirections,
    guessed_spellings,
    is_plain_file,
    path_words,
    spellings,
)
from steno.guard.decision import Decision, Isolation, Mode
from steno.guard.denied_files import TALKERS, DeniedFiles
from steno.guard.files import Files
from steno.guard.fixed_commands import fixed_paths
from steno.guard.moves import Folders, folders_of
from steno.guard.paths import Place, holds_protected, is_inside, why_protected
from steno.guard.patterns import TextPattern
from steno.guard.readers import READ_ONLY
from steno.guard.readonly import Reads, read_by, repository_of
from steno.guard.repository_reach import git_outside
from steno.guard.rule_options import why_void
from steno.guard.rules import Kind, Rule, Rules
from steno.guard.shell import Reading, read_script
from steno.guard.switches import RUNNERS
from steno.guard.words import (
    GAP,
    HOLE,
    Command,
    Word,
    harmless,
    harmless_before,
    literal,
    names,
)
from steno.guard.wrappers import base_name

__all__ = ["Commands"]

# What accepting edits means for commands: letters of the options that may be given.
_EDITORS: Final[Mapping[str, str]] = {
    "mkdir": "pv",
    "touch": "acm",
    "rm": "rRfivd",
    "rmdir": "pv",
    "cp": "fnvpuT",
    "mv": "fnvuT",
}
_TAKES_TWO: Final = frozenset({"cp", "mv"})
# They have no option or operand that names a file to write.
_NEVER_WRITE: Final = names(
    "cd cat head tail wc nl tac rev cut tr grep egrep fgrep comm cmp diff paste join fold od ls stat du"
    " echo printf basename dirname realpath readlink md5sum sha1sum sha256sum true false test ["
)


class Commands(msgspec.Struct, frozen=True):
    """Judges shell commands."""

    rules: Rules
    mode: Mode
    folders: tuple[str, ...]
    files: Files
    home: str
    """What bash takes `~` for."""
    read_only: frozenset[str] | None = None
    """The programs that may run because they only read; None for all that are known here."""
    confinable: bool = True
    """Whether a command can be confined here; otherwise only fixed commands run unasked."""

    def judge(self, script: str, cwd: str) -> Decision:
        """Say whether a script may run in a folder."""
        reading = read_script(script)
        where = folders_of(reading, cwd, self.home)
        denied = self._forbidden("deny", reading, script)
        denied = denied or DeniedFiles(self.rules, self.files).named(reading, where)
        if denied is not None and denied.verdict == "deny":
            return denied
        asked = self._forbidden("ask", reading, script) or denied
        if asked is not None:
            return Decision("ask", asked.reason, asked.rule)
        free = self._free()
        if reading.trouble:
            narrow = [*self.rules.about("deny", SHELL), *self.files.rules.about("deny", "Read")]
            narrow += self.files.rules.about("deny", "Edit")
            if free is not None and not narrow:
                return self._guarded(reading, where) or free
            return Decision("ask", f"the command is not understood: {reading.trouble}")
        if not tuple(reading.every()) and not reading.tests:
            return Decision("ask", "there is no command in it")
        return self._each(reading, where, free)

    def unallowed(self, script: str, cwd: str) -> list[Command]:
        """Return the commands that need a rule, for rules to be offered."""
        reading = read_script(script)
        where = folders_of(reading, cwd, self.home)
        if reading.trouble:
            return []
        # Next to a command with a rule, what only reads is not confined and needs one as well.
        return [
            each
            for each in reading.commands
            if self._why_not(each, where)
            or (self._unruled(each, where) and not self._is_fixed(each, where))
        ]

    def _each(self, reading: Reading, where: Folders, free: Decision | None) -> Decision:
        refused = self._guarded(reading, where)
        if refused is not None:
            return refused
        if free is not None:
            sealed = [each for each in reading.every() if each.sealed and not _is_known(each)]
            if sealed and self.rules.about("deny", SHELL):
                return Decision("ask", f"a rule may forbid what it runs: {sealed[0].sealed}")
            return free
        moved = [each for each in reading.every() if base_name(each.program) == "mv"]
        for command in reading.commands:
            why = self._why_not(command, where)
            if why:
                return Decision("ask", why)
        if moved and len(reading.commands) > 1 and not all(map(self._rule, reading.commands)):
            return Decision("ask", "files are moved, so later names may stand for other files")
        isolation = self._isolation(reading, where)
        if isolation is None:
            return Decision("ask", self._why_unconfined(reading, where))
        found = [rule for each in reading.commands for rule in self._rules_of(each)]
        if found:
            rules = sorted({rule.text for rule in found})
            # Behind a wrapper such as `timeout 5`, it is not the very command that a rule gives.
            given = all(self._rule(each) for each in reading.commands if each.transparent)
            exact = given and not any(rule.command and rule.command.is_open for rule in found)
            reason = f"the rules allow it: {', '.join(rules)}"
            return Decision("allow", reason, rules[0], isolation=isolation, exact=exact)
        does = "it stays" if isolation == "edit" else "it only reads,"
        return Decision("allow", f"{does} inside the working folders", isolation=isolation)

    # Isolation

    def _isolation(self, reading: Reading, where: Folders) -> Isolation | None:
        """Return how an allowed script runs; None when it may not run without approval after all.

        One script is one process: what a rule allows is not confined, so nothing may stand next to
        it that is only harmless when it is confined.
        """
        commands = tuple(reading.commands)
        unruled = [each for each in commands if self._unruled(each, where)]
        writes = any(
            each.writes for command in reading.every() for each in file_redirections(command)
        )
        if self.confinable and any(self._rereads(each, where) for each in commands):
            # What git reads without a rule stays confined with one: settings can name other files.
            held = [each for each in commands if each in unruled or self._rereads(each, where)]
            unruled = held if len(held) == len(commands) else unruled
        if commands and not unruled and not writes:
            return None if self._may_show_denied(commands[1:]) else ""
        if len(unruled) == len(commands) and self.confinable:
            edits = writes or any(self._edits(each, where) for each in reading.every())
            if edits and not all(self._is_bounded(each, where) for each in reading.every()):
                return None
            return "edit" if edits else "read"
        if writes and unruled:
            return None
        if not all(self._is_fixed(each, where) for each in unruled):
            return None
        ruled = next((at for at, each in enumerate(commands) if each not in unruled), 0)
        later = [each for each in commands[ruled:] if each in unruled]
        if len(unruled) == len(commands):
            return "fixed" if not writes else None
        if any(map(_names_files, later)) or self._may_show_denied(commands[ruled + 1 :]):
            return None
        return ""

    def _unruled(self, command: Command, where: Folders) -> bool:
        """Whether a command, or one inside it, is allowed without a rule that names it."""
        if not command.words:
            return True
        rule = self._rule(command)
        if rule is not None and rule.command is not None and rule.command.named > command.reach:
            return False
        if rule is None and not (command.transparent and command.inner):
            return True
        return any(self._unruled(inner, where) for inner in command.inner)

    def _may_show_denied(self, later: tuple[Command, ...]) -> bool:
        """Whether reading commands may show a denied file that others have put under their names."""
        if not self.rules.about("deny", "Read"):
            return False
        return any(_is_reader(each) and _names_files(each) for each in later)

    def _rereads(self, command: Command, where: Folders) -> bool:
        """Whether a git command that a rule with a `*` allows would be allowed without it."""
        rule = self._rule(command)
        if rule is None and command.transparent and command.inner:
            return all(self._rereads(inner, where) for inner in command.inner)
        if command.program != "git" or rule is None or rule.command is None:
            return False
        return rule.command.is_open and not command.inner and self._reads(command, where)

    def _is_bounded(self, command: Command, where: Folders) -> bool:
        """Whether a command, where it may write, writes only the files that it was judged by."""
        if not command.words or command.program in _NEVER_WRITE or self._edits(command, where):
            return True
        if read_by(command) is not None or command.inner:
            return True
        known = all(word.literal for word in command.words)
        return known and command.program in {"sed", "awk"} and self._read_by(command) is not None

    def _is_fixed(self, command: Command, where: Folders) -> bool:
        """Whether a command is a fixed one, and reads only what may be read."""
        if not command.words:
            # A variable of the script's own; what runs in its value is judged by itself.
            return True
        if command.transparent and command.inner:
            return all(self._is_fixed(inner, where) for inner in command.inner)
        if command.program == "cd":
            return self._reads(command, where)
        found = fixed_paths(command)
        if found is None:
            return False
        words, folders = found
        for word in words or ((literal("."),) if folders else ()):
            places = where.places(word)
            if places is None or any(self.files.read(p).verdict != "allow" for p in places):
                return False
            if not all(is_plain_file(place.real, folders=folders) for place in places):
                return False
        return not where.lost or not words

    def _why_unconfined(self, reading: Reading, where: Folders) -> str:
        """Say why a script that only reads needs approval all the same."""
        shown = next(
            (
                each.set_text.replace(GAP, " ").replace(HOLE, "…")
                for each in reading.commands
                if self._unruled(each, where) and not self._is_fixed(each, where)
            ),
            "",
        )
        unruled = all(self._unruled(each, where) for each in reading.commands)
        if not shown and not unruled:
            return "a command that a rule allows may change the files next to it"
        if not self.confinable:
            does = f"`{shown}` runs" if shown else "it writes a file"
            return f"{does} unasked only where commands can be confined"
        if unruled:
            return "it writes a file, and a command in it may write others"
        return (
            f"no rule allows `{shown}`, and next to a command that a rule allows it is not confined"
        )

    # Rules

    def _free(self) -> Decision | None:
        """Return the decision when every command is allowed that nothing forbids."""
        if self.mode == "bypassPermissions":
            return Decision("allow", "permissions are bypassed", exact=True)
        bare = next((rule for rule in self.rules.about("allow", SHELL) if rule.is_bare), None)
        if bare is None or self.mode == "plan":
            return None
        return Decision("allow", f"the rule {bare.text} allows it", bare.text, exact=True)

    def _forbidden(self, kind: Kind, reading: Reading, script: str) -> Decision | None:
        """Return what rules that forbid say; a rule that may fit asks."""
        perhaps: Decision | None = None
        for rule in self.rules.about(kind, SHELL):
            if rule.command is None:
                return Decision(kind, f"the rule {rule.text} {_SAYS[kind]}", rule.text)
            if rule.command.covers(script):
                return Decision(kind, f"the rule {rule.text} {_SAYS[kind]}", rule.text)
            for command in reading.every():
                texts = tuple(spellings(command))
                if any(map(rule.command.covers, texts)):
                    return Decision(kind, f"the rule {rule.text} {_SAYS[kind]}", rule.text)
                if perhaps is None and any(map(rule.command.covers, guessed_spellings(command))):
                    reason = f"the rule {rule.text} may be about it; options come before its words"
                    perhaps = Decision("ask", reason, rule.text)
                if perhaps is None and any(map(rule.command.may_cover, texts)):
                    reason = f"the rule {rule.text} may be about it; its words are not known yet"
                    perhaps = Decision("ask", reason, rule.text)
        return perhaps

    def _rule(self, command: Command) -> Rule | None:
        """Return the rule that allows a command, and what hides in it where it names that."""
        return self._matched(command)[0]

    def _rules_of(self, command: Command) -> Iterator[Rule]:
        """Yield the rules that allow a command, or what runs in a transparent one."""
        rule = self._rule(command)
        if rule is not None:
            yield rule
        elif command.transparent:
            for inner in command.inner:
                yield from self._rules_of(inner)

    def _matched(self, command: Command) -> tuple[Rule | None, str]:
        """Return the rule that allows a command; without one, why a rule that fits is void."""
        if self.mode == "plan" or not command.words:
            return None, ""
        plain = all(harmless_before(each.name) for each in command.assignments)
        before = () if plain else command.assignments
        skipped = len(before)
        texts = [f"{each.name}={each.value.shown}" for each in before]
        texts += [word.shown for word in command.words]
        found: Rule | None = None
        void = ""
        for rule in self.rules.about("allow", SHELL):
            covered = rule.command.unnamed(texts) if rule.command is not None else None
            if rule.command is None or covered is None:
                continue
            named = rule.command.named - skipped
            why = self._why_void(command, covered, skipped, rule.command)
            if why:
                void = void or why
            elif named > command.reach:
                return rule, ""
            elif rule.command.named > 0 and not command.sealed:
                found = rule
        return found, void if found is None else ""

    def _why_void(
        self, command: Command, covered: Mapping[int, int], skipped: int, pattern: TextPattern
    ) -> str:
        """Say why a rule does not allow the words that its `*` covers; empty when it does."""
        if not pattern.is_open:
            return ""
        if any(place < skipped for place in covered):
            return f"it sets {command.assignments[0].name}; the rule does not name it"
        beyond = {place - skipped: fixed for place, fixed in covered.items()}
        return why_void(command, beyond, pattern.named - skipped)

    def _why_not(self, command: Command, where: Folders) -> str:
        """Say why a command is not allowed; empty when it is."""
        shown = command.set_text.replace(GAP, " ").replace(HOLE, "…")
        if not command.words:
            odd = next((each.name for each in command.assignments if not harmless(each.name)), "")
            return f"it sets {odd}, which changes what other commands do" if odd else ""
        rule, void = self._matched(command)
        if rule is not None and rule.command is not None and rule.command.is_open:
            shows = DeniedFiles(self.rules, self.files).shown(command, where)
            shows = shows or git_outside(command, where, self.folders)
            if shows:
                return shows
        if rule is not None and rule.command is not None and rule.command.named > command.reach:
            return ""
        if void and not self._reads(command, where):
            return void
        if command.sealed:
            return f"nobody can say what `{shown}` runs: {command.sealed}"
        plain = all(harmless_before(each.name) for each in command.assignments)
        ready = (
            rule is not None
            or (plain and (command.transparent or self._reads(command, where)))
            or (plain and self._edits(command, where))
        )
        if not ready:
            return f"no rule allows `{shown}`"
        for inner in command.inner:
            why = self._why_not(inner, where)
            if why:
                return why
        return ""

    # Files

    def _guarded(self, reading: Reading, where: Folders) -> Decision | None:
        """Return what the files that commands are given have to say."""
        files = self.files
        if self._free() is not None:
            # Whatever is not forbidden or protected is allowed then.
            files = msgspec.structs.replace(files, mode="bypassPermissions")
        for command in reading.every():
            refused = self._redirected(command, where, files) or self._protected(command, where)
            if refused is not None:
                return refused
        return None

    def _redirected(self, command: Command, where: Folders, files: Files) -> Decision | None:
        for each in command.redirections:
            places = where.places(each.target)
            if places is None and files.mode == "bypassPermissions" and not files.forbids():
                continue
            if places is None:
                return Decision("ask", "a file that it uses is not known before it runs")
            for place in places:
                if place.path in DEVICES:
                    continue
                said = files.write(place) if each.writes else files.read(place)
                if said.verdict != "allow":
                    return said
        return None

    def _protected(self, command: Command, where: Folders) -> Decision | None:
        """Ask where a command that does more than read is given a protected place."""
        if command.program in TALKERS or self._read_by(command) is not None:
            return None
        for word in path_words(command):
            for place in where.places(word) or ():
                protected = why_protected(place)
                if protected:
                    reason = f"{place.path} is not changed without asking: {protected}"
                    return Decision("ask", reason)
        return None

    def _reads(self, command: Command, where: Folders) -> bool:
        """Whether a command only reads, and only what may be read."""
        if self.read_only is not None and command.program not in self.read_only:
            return False
        if command.program == "cd":
            return not where.lost and all(
                is_inside(Place.of(folder), self.folders) for folder in where.all
            )
        reads = self._read_by(command)
        if reads is None:
            return False
        if reads.deep and self.files.hides_some() and not self._is_held(command):
            return False
        if command.program == "git" and len(set(map(repository_of, where.all))) != 1:
            return False
        if command.program == "git" and repository_of(where.all[0]) == "?":
            return False
        if where.lost and command.program not in TALKERS and not reads.paths:
            return False
        for word in reads.paths:
            places = where.places(word)
            if places is None or any(self.files.read(p).verdict != "allow" for p in places):
                return False
        return True

    def _read_by(self, command: Command) -> Reads | None:
        return read_by(command, confined=self.confinable)

    def _is_held(self, command: Command) -> bool:
        """Whether confinement keeps a command from files that must not be read.

        It covers the files, but not what git has committed of them.
        """
        return self.confinable and command.program != "git"

    def _edits(self, command: Command, where: Folders) -> bool:
        """Whether a command only makes, moves or removes files that may be edited."""
        letters = _EDITORS.get(command.program)
        if self.mode != "acceptEdits" or letters is None or command.inner:
            return False
        options = [word for word in command.words[1:] if word.text.startswith("-")]
        if any(set(word.text[1:]) - set(letters) for word in options):
            return False
        targets = [word for word in command.words[1:] if word not in options]
        if command.program in _TAKES_TWO and len(targets) > 1:
            # Where the last one is a folder, each of the others gets a name in it.
            into = targets[-1]
            for source in targets[:-1]:
                name = source.text.rstrip("/").rsplit("/", 1)[-1]
                targets.append(Word(f"{into.text}/{name}", tilde=into.tilde))
        return bool(targets) and all(self._may_edit(word, command, where) for word in targets)

    def _may_edit(self, word: Word, command: Command, where: Folders) -> bool:
        places = where.places(word)
        if places is None:
            return False
        for place in places:
            if self.files.write(place).verdict != "allow" or not is_inside(place, self.folders):
                return False
            if command.program in {"rm", "rmdir", "mv"} and (
                holds_protected(place, self.folders) or os.path.islink(place.path)
            ):
                return False
        return True


def _is_reader(command: Command) -> bool:
    """Whether a command, or one that it does nothing but run, is known to read."""
    if command.transparent and command.inner:
        return any(map(_is_reader, command.inner))
    return base_name(command.program) in READ_ONLY


def _names_files(command: Command) -> bool:
    """Whether a reading command opens files or folders, which may have changed since it was judged."""
    if any(not each.writes for each in file_redirections(command)) or command.program == "cd":
        return True
    if command.transparent and command.inner:
        return any(map(_names_files, command.inner))
    found = fixed_paths(command)
    if found is None:
        return any(not word.text.startswith("-") for word in command.words[1:])
    return bool(found[0])


_SAYS: Final[Mapping[Kind, str]] = {"deny": "forbids it", "ask": "asks", "allow": "allows it"}


def _is_known(command: Command) -> bool:
    """Whether a program runs only what is its own: its code, its subcommands."""
    return base_name(command.program) in RUNNERS
