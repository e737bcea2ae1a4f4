"""Reads a shell command into the simple commands that it runs.

reading = read_script("cd src && rg --pre rm x | head")
[command.program for command in reading.commands]   # cd, rg (with an inner rm), head
reading.trouble                                     # why it was not understood; empty if it was

One parser reads everything, and only what is known to mean the same to it and to bash counts as
understood. Whoever is handed trouble has to ask.
"""

import re
import unicodedata
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import msgspec

from steno.guard.grammar import (
    APART,
    COMPARISONS,
    HOLDERS,
    LEAVES,
    ODD_BACKQUOTES,
    RESERVED,
    TESTS,
    WORDS,
)
from steno.guard.hidden import unfold
from steno.guard.syntax import Trouble, assignment, heredoc, redirection, word
from steno.guard.words import HOLE, Assignment, Command, Redirection, Word, literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tree_sitter import Node, Parser

__all__ = ["MOST_COMMANDS", "Reading", "read_script"]

MOST_COMMANDS: Final = 50
_MOST_WORDS: Final = 1000
_MOST_BYTES: Final = 64 << 10
_MOST_DEPTH: Final = 40
_MOST_SCRIPTS: Final = 4
_PLAIN: Final = re.compile(r"[ -~\n\t]*")
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"})


class Reading(msgspec.Struct, frozen=True):
    """The commands of a script, and why there may be more to it."""

    commands: tuple[Command, ...] = ()
    trouble: str = ""
    tests: bool = False
    """Whether there are tests in it, which say something of files and words and do nothing."""

    def every(self) -> "Iterator[Command]":
        """Yield all commands, those inside others too."""
        yield from _every(self.commands)


def read_script(script: str) -> Reading:
    """Return what a script runs."""
    return _read(script, 0)


def _every(commands: tuple[Command, ...]) -> "Iterator[Command]":
    for command in commands:
        yield command
        yield from _every(command.inner)


def _read(script: str, depth: int, *, repeated: bool = False) -> Reading:
    troubles: list[str] = []
    if not _PLAIN.fullmatch(script) and any(_unseen(char) for char in script):
        troubles.append("it has characters that cannot be seen")
    source = script.encode("utf-8", "replace")
    if len(source) > _MOST_BYTES:
        return Reading(trouble="it is too long to be judged")
    if depth > _MOST_SCRIPTS:
        return Reading(trouble="scripts run scripts too many times over")
    reader = _Reader(source, depth, repeated=repeated)
    root = _parser().parse(source).root_node
    if (source[: root.start_byte] + source[root.end_byte :]).strip(b" \t\n"):
        troubles.append("it has something in it that the parser passes over")
    reader.statement(root, 0)
    troubles += reader.troubles
    if sum(1 for _ in _every(tuple(reader.commands))) > MOST_COMMANDS:
        troubles.append(f"it has more than {MOST_COMMANDS} commands")
    if sum(map(_size, reader.commands)) > _MOST_WORDS:
        # Each word is looked up on disk several times, so no command is judged at all.
        return Reading(trouble=f"it has more than {_MOST_WORDS} words")
    return Reading(tuple(reader.commands), troubles[0] if troubles else "", reader.tests)


def _size(command: Command) -> int:
    """Return how many words, variables and redirections a command has."""
    return len(command.words) + len(command.assignments) + len(command.redirections)


def _unseen(char: str) -> bool:
    return char not in " \n\t" and unicodedata.category(char) in _UNSEEN


_parsers: "list[Parser]" = []


def _parser() -> "Parser":
    if not _parsers:
        import tree_sitter_bash
        from tree_sitter import Language, Parser

        _parsers.append(Parser(Language(tree_sitter_bash.language())))
    return _parsers[0]


class _Reader:
    """Walks one tree; what it does not know becomes a trouble, and it goes on to find the rest."""

    def __init__(self, source: bytes, depth: int, *, repeated: bool) -> None:
        self.source = source
        self.depth = depth
        self.commands: list[Command] = []
        self.troubles: list[str] = []
        self.loops = 1 if repeated else 0
        self.end: int | None = None
        self.tests = False

    def statement(self, node: "Node", depth: int) -> None:
        """Read a statement, or anything that holds statements."""
        if depth > _MOST_DEPTH:
            self.troubles.append("it is nested too deep")
            return
        kind = node.type
        if node.is_error or node.is_missing:
            self.troubles.append("it is no complete shell command")
        read = _READ_BY.get(kind)
        if read is not None:
            read(self, node, depth)
        elif kind in WORDS:
            self.value(node, depth)
        else:
            after = self.source[node.end_byte : node.end_byte + 1]
            if kind in APART and after.strip(b" \t\n;"):
                self.troubles.append("it has something that may be a word or not")
            if kind not in HOLDERS and kind not in LEAVES and not node.is_error:
                self.troubles.append(f"it has syntax that is not judged here ({kind})")
            self.inside(node, depth)

    def loop(self, node: "Node", depth: int) -> None:
        """Read what may run more than once."""
        self.loops += 1
        if node.type == "for_statement":
            name = node.child_by_field_name("variable")
            named = (name.text or b"?").decode() if name is not None else "?"
            self.add(Command(assignments=(Assignment(named, Word(HOLE)),)))
        self.inside(node, depth)
        self.loops -= 1

    def redirect(self, node: "Node", depth: int) -> None:
        """Read a redirection that is of no simple command: of a group, a loop, or nothing."""
        self.add(Command(redirections=self.redirections([node], depth)))

    def inside(self, node: "Node", depth: int) -> None:
        """Read the children, and see that nothing but blanks lies between them."""
        self.between(node)
        if node.type == "redirected_statement" and node.children[0].type == "command":
            self.command(node.children[0], depth + 1, node.children[1:])
            return
        if node.type == "command_substitution" and ODD_BACKQUOTES.match(node.text or b""):
            self.troubles.append("it has backquotes with quotes or comments in them")
        for child in node.children:
            self.statement(child, depth + 1)

    def between(self, node: "Node", blanks: bytes = b" \t\n") -> None:
        """Note what the parser has passed over."""
        at = node.start_byte if node.children else node.end_byte
        for child in node.children:
            if self.source[at : child.start_byte].strip(blanks):
                self.troubles.append("it has something in it that the parser passes over")
            at = child.end_byte
        if self.source[at : node.end_byte].strip(blanks):
            self.troubles.append("it has something in it that the parser passes over")

    def apart(self, node: "Node") -> None:
        """See that words stand apart: what the parser takes for two words is one to bash."""
        for before, child in pairwise(node.children):
            if before.end_byte == child.start_byte:
                self.troubles.append("it has words that the parser cuts in two")

    def comment(self, node: "Node", _depth: int = 0) -> None:
        """See that a comment is one to bash as well."""
        before = self.source[node.start_byte - 1 : node.start_byte]
        if before not in {b"", b" ", b"\t", b"\n", b";"}:
            self.troubles.append("it has a # that may not begin a comment")

    def value(self, node: "Node", depth: int) -> Word:
        """Read a word, and the commands that run to make it."""
        found: list[Node] = []
        try:
            made = word(node, found)
        except Trouble as trouble:
            self.troubles.append(str(trouble))
            made = Word(HOLE, splits=True)
            found = list(_substitutions(node))
        self.substituted(found, depth)
        return made

    def substituted(self, nodes: "Iterable[Node]", depth: int) -> None:
        """Read what runs to make a word."""
        for node in nodes:
            outside, self.end = self.end, node.end_byte - 1
            self.inside(node, depth + 1)
            self.end = outside

    def command(self, node: "Node", depth: int, behind: "list[Node] | None" = None) -> None:
        """Read a simple command and what follows it in its statement."""
        self.between(node, b" \t")
        words: list[Word] = []
        sets: list[Assignment] = []
        redirects: list[Node] = list(behind or ())
        self.apart(node)
        for child in node.children:
            if child.type == "variable_assignment":
                sets.append(self.assigned(child, depth))
            elif child.type == "command_name":
                words.append(self.value(child.children[0], depth))
            elif child.type in {"file_redirect", "herestring_redirect", "heredoc_redirect"}:
                redirects.append(child)
            elif child.type in WORDS:
                words.append(self.value(child, depth))
            elif child.type == "comment":
                self.comment(child)
            else:
                self.troubles.append(f"it has syntax that is not judged here ({child.type})")
                self.statement(child, depth + 1)
        made = self.redirections(redirects, depth)
        self.add(Command(words=tuple(words), assignments=tuple(sets), redirections=made))

    def redirections(self, nodes: "list[Node]", depth: int) -> tuple[Redirection, ...]:
        """Read redirections; a here-document's node also holds what stands behind it."""
        made: list[Redirection] = []
        for node in nodes:
            try:
                if node.type == "file_redirect":
                    found = redirection(node, self.source)
                    if found is not None:
                        target = self.value(found[0], depth)
                        made.append(Redirection(writes=found[1], target=target))
                elif node.type == "herestring_redirect":
                    self.between(node, b" \t")
                    _, *rest = node.children
                    if len(rest) != 1 or node.children[0].type != "<<<":
                        self.troubles.append("it has a here-string that is not judged here")
                    for each in rest:
                        self.value(each, depth)
                elif node.type == "heredoc_redirect":
                    made += self.heredoc(node, depth)
                else:
                    self.statement(node, depth + 1)
            except Trouble as trouble:
                self.troubles.append(str(trouble))
                self.statements_in(node, depth)
        return tuple(made)

    def heredoc(self, node: "Node", depth: int) -> tuple[Redirection, ...]:
        """Read a here-document: commands in its text, and the rest of its line."""
        made: tuple[Redirection, ...] = ()
        heredoc(node, self.source, self.end)
        for child in node.children:
            if child.type == "heredoc_body":
                self.statements_in(child, depth)
            elif child.type == "file_redirect":
                made += self.redirections([child], depth)
            elif child.type in WORDS:
                # More words of the command itself, which was read without them.
                self.troubles.append("it has words behind a here-document")
                self.value(child, depth)
            elif child.type not in {"<<", "<<-", "heredoc_start", "heredoc_end"}:
                self.statement(child, depth + 1)
        return made

    def statements_in(self, node: "Node", depth: int) -> None:
        """Read the commands that run to make something that is no word."""
        self.substituted(_substitutions(node), depth)

    def assigned(self, node: "Node", depth: int) -> Assignment:
        try:
            name, value = assignment(node)
        except Trouble as trouble:
            self.troubles.append(str(trouble))
            self.statements_in(node, depth)
            return Assignment("?", Word(HOLE))
        return Assignment(name, self.value(value, depth) if value is not None else Word(""))

    def declaration(self, node: "Node", depth: int) -> None:
        """Read `NAME=value`, `export …`, `unset …`."""
        self.between(node)
        if node.type == "variable_assignment":
            self.add(Command(assignments=(self.assigned(node, depth),)))
            return
        self.apart(node)
        words: list[Word] = []
        for child in node.children:
            if child.type == "variable_assignment":
                made = self.assigned(child, depth)
                value = made.value
                words.append(Word(f"{made.name}={value.text}", splits=value.splits))
            elif child.type in WORDS:
                words.append(self.value(child, depth))
            else:
                words.append(literal((child.text or b"").decode()))
        self.add(Command(words=tuple(words)))

    def test(self, node: "Node", depth: int) -> None:
        """Read `[ … ]` and `[[ … ]]`: some of their operators run what a variable holds."""
        self.tests = True
        self.between(node, b" \t")
        begin, end = node.children[0], node.children[-1]
        splits_matter = begin.type == "["
        edges = (self.source[begin.end_byte :][:1], self.source[: end.start_byte][-1:])
        if end.type not in {"]", "]]"} or any(edge not in {b" ", b"\t"} for edge in edges):
            self.troubles.append("it has a test that is not judged here")
        for child in node.children:
            self.tested(child, depth, splits_matter=splits_matter)

    def tested(self, node: "Node", depth: int, *, splits_matter: bool) -> None:
        if node.type in {"unary_expression", "binary_expression", "parenthesized_expression"}:
            self.between(node, b" \t")
            for child in node.children:
                self.tested(child, depth, splits_matter=splits_matter)
        elif node.type in WORDS:
            if self.value(node, depth).splits and splits_matter:
                self.troubles.append("it has a test whose words are not known")
        elif node.type == "test_operator":
            if (node.text or b"").decode() not in TESTS:
                self.troubles.append("it has a test that may run what a variable holds")
        elif node.type not in COMPARISONS:
            self.troubles.append(f"it has a test that is not judged here ({node.type})")
            self.statements_in(node, depth)

    def add(self, command: Command) -> None:
        """Keep a command, with what hides in it."""
        self.commands.append(self.whole(command, 0, repeated=self.loops > 0))

    def whole(self, command: Command, depth: int, *, repeated: bool) -> Command:
        """Return a command with the commands that hide in it, and with those that hide in them."""
        if command.words and (not command.words[0].literal):
            self.troubles.append("the name of a program is not known before it runs")
        if command.program in RESERVED:
            self.troubles.append(f"it has syntax that is not judged here ({command.program})")
        if depth > _MOST_SCRIPTS:
            self.troubles.append("commands run commands too many times over")
            return command
        hidden = unfold(command)
        again = repeated or hidden.repeated
        inner = [self.whole(each, depth + 1, repeated=again) for each in hidden.inner]
        for script in hidden.scripts:
            reading = _read(script, self.depth + 1, repeated=again)
            inner += reading.commands
            self.troubles += [reading.trouble] if reading.trouble else []
        return msgspec.structs.replace(
            command,
            repeated=repeated,
            inner=tuple(inner),
            redirections=(*command.redirections, *hidden.redirections),
            reach=hidden.reach,
            sealed=hidden.sealed,
            transparent=hidden.transparent,
        )


_READ_BY: "Final[Mapping[str, Callable[[_Reader, Node, int], None]]]" = {
    "command": _Reader.command,
    "while_statement": _Reader.loop,
    "for_statement": _Reader.loop,
    "function_definition": _Reader.loop,
    "variable_assignment": _Reader.declaration,
    "declaration_command": _Reader.declaration,
    "unset_command": _Reader.declaration,
    "test_command": _Reader.test,
    "comment": _Reader.comment,
    "file_redirect": _Reader.redirect,
    "herestring_redirect": _Reader.redirect,
    "heredoc_redirect": _Reader.redirect,
}


def _substitutions(node: "Node") -> "Iterator[Node]":
    """Yield the outermost command substitutions under a node."""
    if node.type in {"command_substitution", "process_substitution"}:
        yield node
        return
    for child in node.children:
        yield from _substitutions(child)
