"""Parses a shell script into the simple commands that it runs.

script = parse_script("cd src && rg --pre rm x | head")
[command.program for command in script.commands]    # cd, rg (with a nested rm), head
script.trouble                                      # why it cannot be parsed; empty if it can

Only syntax that this parser and bash interpret in the same way is supported. Any other script needs approval.
"""

import re
import unicodedata
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import msgspec

from steno.errors import StenoError
from steno.permissions.shell.command import UNKNOWN_PART, Assignment, Command, Redirection, Word, literal_word, word_set
from steno.permissions.shell.nested_commands import find_nested_commands

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tree_sitter import Node, Parser


# Nodes that only contain other nodes.
CONTAINER_NODES: Final = frozenset(
    {
        "program",
        "list",
        "pipeline",
        "subshell",
        "compound_statement",
        "redirected_statement",
        "negated_command",
        "if_statement",
        "elif_clause",
        "else_clause",
        "do_group",
        "variable_assignments",
        "case_statement",
        "case_item",
    }
)
ODD_BACKQUOTES: Final = re.compile(rb"`.*[\\#'\"]", re.DOTALL)
TOKEN_NODES: Final = frozenset(
    {
        *(";", ";;", "&&", "||", "|", "|&", "&", "(", ")", "{", "}", "!"),
        *("if", "then", "elif", "else", "fi", "while", "until", "for", "in", "do", "done"),
        *("case", "esac", "function", "select", "$(", "`", "<(", ">("),
    }
)
# Words of the bash grammar, which cannot be program names.
RESERVED_WORDS: Final = word_set(
    "if then elif else fi for while until do done case esac select function coproc { } [[ ]] ! in"
)
# Words that are keywords only if white space follows.
SEPARATED_WORDS: Final = frozenset(
    {*("{", "!", "if", "then", "elif", "else", "while", "until", "for", "in", "do", "case")}
)
WORD_NODES: Final = frozenset(
    {
        *("word", "string", "raw_string", "number", "concatenation", "simple_expansion"),
        *("expansion", "command_substitution", "process_substitution", "arithmetic_expansion"),
        *("ansi_c_string", "translated_string", "brace_expression", "extglob_pattern"),
        *("array", "string_content", "regex", "variable_name"),
    }
)
TEST_OPERATORS: Final = word_set("-f -d -e -r -w -x -s -z -n -L -h -nt -ot -ef")
COMPARISON_OPERATORS: Final = frozenset({"=", "==", "!=", "!", "&&", "||", "[", "]", "[[", "]]"})


_PLAIN_WORD: Final = re.compile(r"(?:[A-Za-z0-9_./:=@%+,~^*?\[\]{}!#-]|[^\x00-\x7f]|\\[^\n])*")
_SPECIAL_CHARACTERS: Final = re.compile(r"\\(.)|([*?])|(\[.*)", re.DOTALL)
_IN_STRING: Final = re.compile(r"\\([$`\"\\])")
_PARAMETER: Final = re.compile(
    r"\$(?:[A-Za-z_]\w*|[0-9?#$!@*-])"
    r"|\$\{(?:[A-Za-z_]\w*|[0-9]+|#[A-Za-z_]\w*)"
    r"(?:(?::-|:\+|-|\+|%%?|##?)[A-Za-z0-9_./*-]*)?\}",
    re.ASCII,
)
_ARITHMETIC: Final = re.compile(r"\$\(\([0-9 +*/%-]*\)\)", re.ASCII)
_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_DELIMITER: Final = re.compile(r"([\"']?)([A-Za-z_]\w*)\1", re.ASCII)
_WRITING_OPERATORS: Final = {"<": False, ">": True, ">>": True, "&>": True, "&>>": True, ">|": True}
_OPERATOR_AND_TARGET: Final = 2
_REDIRECTION_START: Final = re.compile(rb"[0-9]*[<>&]")
_DESCRIPTOR: Final = re.compile(rb"(?:^|[ \t\n;&|({`])[0-9]+$")
_DUPLICATIONS: Final = frozenset({">&", "<&"})


class UnsupportedSyntax(StenoError):
    """Shell syntax that is not supported."""


def parse_word(node: "Node", substitutions: "list[Node]") -> Word:
    """Return the word of a node; append the substitutions in it to `substitutions`.

    Raises:
        UnsupportedSyntax: bash may interpret the word differently.
    """
    if node.is_error or node.is_missing or node.has_error:
        raise UnsupportedSyntax("incomplete shell command")
    kind = node.type
    if kind in {"concatenation", "array"}:
        return (
            _parse_concatenation(node, substitutions) if kind == "concatenation" else _parse_array(node, substitutions)
        )
    if kind in {"word", "number", "variable_name", "regex", "extglob_pattern"}:
        return _parse_bare_word(_node_text(node))
    if kind == "raw_string":
        return Word(_node_text(node)[1:-1])
    if kind == "string":
        return _parse_string(node, substitutions)
    if kind in {"simple_expansion", "expansion"}:
        return _parse_parameter(node)
    if kind in {"command_substitution", "process_substitution"}:
        substitutions.append(node)
        return Word(UNKNOWN_PART, splits=kind == "command_substitution")
    if kind == "arithmetic_expansion" and _ARITHMETIC.fullmatch(_node_text(node)):
        return Word(UNKNOWN_PART)
    raise UnsupportedSyntax(f"unsupported word ({kind})")


def parse_assignment(node: "Node") -> "tuple[str, Node | None]":
    """Return the name of the variable and the node of its value.

    Raises:
        UnsupportedSyntax: the target is not a plain variable.
    """
    name = node.child_by_field_name("name")
    if node.has_error or name is None or not _NAME.fullmatch(_node_text(name)):
        raise UnsupportedSyntax("assignment to something other than a plain variable")
    _, equals, *rest = node.children
    value = rest[0] if rest else None
    if value is not None and value.start_byte != equals.end_byte:
        raise UnsupportedSyntax("unsupported assignment")
    return _node_text(name), value


def parse_redirection(node: "Node", source: bytes) -> "tuple[Node, bool] | None":
    """Return the target of a redirection and whether it is written; None if it is not a file.

    Raises:
        UnsupportedSyntax: the redirection is not a plain one.
    """
    parts = [child for child in node.children if child.type != "file_descriptor"]
    if source[node.end_byte : node.end_byte + 1].strip(b" \t\n;&|)`"):
        raise UnsupportedSyntax("unsupported redirection")
    if not node.text or not _REDIRECTION_START.match(node.text):
        raise UnsupportedSyntax("unsupported redirection")
    if node.text[:1].isdigit() and source[: node.start_byte][-1:].strip(b" \t\n;&|({"):
        raise UnsupportedSyntax("unsupported redirection")
    if not node.text[:1].isdigit() and _DESCRIPTOR.search(source[: node.start_byte]):
        # The parser reads the 0 of `cat 0<a` as a word, bash as a file descriptor.
        raise UnsupportedSyntax("unsupported redirection")
    if re.fullmatch(rb"[0-9]*[<>]&-", node.text):
        return None
    if len(parts) != _OPERATOR_AND_TARGET or node.has_error:
        raise UnsupportedSyntax("unsupported redirection")
    operator, target = parts
    if operator.type in _DUPLICATIONS and re.fullmatch(r"[0-9]+|-", _node_text(target)):
        return None
    # bash expands other words after `>&` twice, even in single quotes.
    if operator.type not in _WRITING_OPERATORS:
        raise UnsupportedSyntax("unsupported redirection")
    return target, _WRITING_OPERATORS[operator.type]


def check_heredoc(node: "Node", source: bytes, substitution_end: int | None) -> None:
    """Check that a here-document ends where bash ends it, and that its text contains no expansion.

    `substitution_end` is the end of the substitution around it: bash ignores separators after a here-document there.

    Raises:
        UnsupportedSyntax: bash may interpret it differently.
    """
    parts = {child.type: child for child in node.children}
    start, body, end = (parts.get(f"heredoc_{name}") for name in ("start", "body", "end"))
    if node.has_error or start is None or end is None or "<<" not in parts:
        raise UnsupportedSyntax("unsupported here-document")
    delimiter_match = _DELIMITER.fullmatch(_node_text(start))
    preceding = source[: node.start_byte][-1:]
    operator = source[node.start_byte : start.start_byte].rstrip(b" \t")
    if delimiter_match is None or operator != b"<<" or preceding.strip(b" \t\n"):
        raise UnsupportedSyntax("unsupported here-document")
    if [child.type for child in node.children].count("heredoc_redirect"):
        raise UnsupportedSyntax("several here-documents on one line")
    line_end = source.find(b"\n", start.end_byte)
    lines = source[line_end + 1 : end.start_byte].split(b"\n")
    delimiter = delimiter_match[2].encode()
    following = source[end.end_byte : end.end_byte + 1]
    if delimiter in lines or lines[-1] or following not in {b"", b"\n"}:
        raise UnsupportedSyntax("here-document with an ambiguous end")
    if source[end.start_byte : end.end_byte] != delimiter:
        raise UnsupportedSyntax("here-document with an ambiguous end")
    if substitution_end is not None and source[end.end_byte : substitution_end].strip(b" \t\n"):
        raise UnsupportedSyntax("here-document with an ambiguous end")
    rest_of_line = source[start.end_byte : line_end]
    if b"<<" in rest_of_line or re.search(rb"[\\#`'\"]", rest_of_line):
        raise UnsupportedSyntax("unsupported text on the line of a here-document operator")
    if body is not None and body.start_byte < line_end:
        raise UnsupportedSyntax("here-document with an ambiguous start")
    text = source[line_end + 1 : end.start_byte]
    if not delimiter_match[1] and re.search(rb"[\\`]|\$[({\[]", text):
        raise UnsupportedSyntax("here-document with expansions")


def _node_text(node: "Node") -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _parse_concatenation(node: "Node", substitutions: "list[Node]") -> Word:
    position = node.start_byte
    parts: list[Word] = []
    bare_texts: list[str] = []
    for child in node.children:
        if child.start_byte != position:
            raise UnsupportedSyntax("word with unparsed text")
        position = child.end_byte
        # A lone `$` before a quote is a separate node and changes the meaning of the quotes.
        if child.type == "$":
            raise UnsupportedSyntax("unsupported quotes")
        parts.append(parse_word(child, substitutions))
        if child.type in {"word", "number"}:
            bare_texts.append(_node_text(child))
    _refuse_braces("".join(bare_texts))
    return Word(
        "".join(part.text for part in parts),
        splits=any(part.splits for part in parts),
        tilde=parts[0].tilde and (len(parts) == 1 or parts[0].text.startswith("~/")),
        glob=all(part.glob for part in parts if part.splits),
    )


def _parse_array(node: "Node", substitutions: "list[Node]") -> Word:
    for child in node.named_children:
        parse_word(child, substitutions)
    return Word(UNKNOWN_PART, splits=True)


def _refuse_braces(text: str) -> None:
    if "{" in text and ("," in text or ".." in text):
        raise UnsupportedSyntax("brace expansion")
    if re.fullmatch(r"\{\w+\}", text):
        raise UnsupportedSyntax("braces that may name a file descriptor")


def _parse_bare_word(text: str) -> Word:
    if not _PLAIN_WORD.fullmatch(text) or text.startswith("#"):
        raise UnsupportedSyntax("unsupported characters in a word")
    _refuse_braces(re.sub(r"\\.", "", text))
    if re.search(r"[=:]~", text):
        raise UnsupportedSyntax("unsupported tilde expansion")
    tilde = text == "~" or text.startswith("~/")
    if text.startswith("~") and not tilde:
        raise UnsupportedSyntax("unsupported tilde expansion")
    if re.search(r"(?<!\\)(?:\\\\)*[*?\[]", text):
        return Word(_SPECIAL_CHARACTERS.sub(_replace_special, text), splits=True, tilde=tilde, glob=True)
    return Word(re.sub(r"\\(.)", r"\1", text), tilde=tilde)


def _replace_special(match: "re.Match[str]") -> str:
    return match[1] if match[1] is not None else UNKNOWN_PART


def _parse_parameter(node: "Node") -> Word:
    text = _node_text(node)
    if not _PARAMETER.fullmatch(text):
        raise UnsupportedSyntax("unsupported parameter expansion")
    if re.match(r"\$\{?#?IFS\b", text):
        raise UnsupportedSyntax("use of IFS, which can join words")
    return Word(UNKNOWN_PART, splits=True)


def _parse_string(node: "Node", substitutions: "list[Node]") -> Word:
    """Return the value of a double-quoted string, built from its bytes as nodes can omit some."""
    source = node.text or b""
    expansions = [child for child in node.children if child.type not in {'"', "string_content", "$"}]
    position = 1
    parts: list[str] = []
    for child in expansions:
        start = child.start_byte - node.start_byte
        parts += [_unescape_string(source[position:start]), parse_word(child, substitutions).text]
        position = child.end_byte - node.start_byte
        if child.type == "simple_expansion" and source[position : position + 1] in {b"(", b"{", b"["}:
            raise UnsupportedSyntax("unsupported quoted string")
    parts.append(_unescape_string(source[position:-1]))
    return Word("".join(parts), splits="$@" in parts or _expands_to_list(expansions))


def _expands_to_list(nodes: "Iterable[Node]") -> bool:
    return any("@" in _node_text(node) for node in nodes if node.type.endswith("expansion"))


def _unescape_string(raw: bytes) -> str:
    text = raw.decode("utf-8", "replace")
    unescaped = _IN_STRING.sub("", text)
    if (
        "\\\n" in unescaped
        or '"' in unescaped
        or "`" in unescaped
        or re.search(r"\$[A-Za-z_0-9({\[?#!@*$-]", unescaped)
    ):
        raise UnsupportedSyntax("unsupported quoted string")
    return _IN_STRING.sub(r"\1", text)


MAX_COMMANDS: Final = 50
_MAX_WORDS: Final = 1000
_MAX_BYTES: Final = 64 << 10
_MAX_DEPTH: Final = 40
_MAX_NESTED_SCRIPTS: Final = 4
_PRINTABLE: Final = re.compile(r"[ -~\n\t]*")
_INVISIBLE_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"})


class ParsedScript(msgspec.Struct, frozen=True):
    """The commands of a script, and the reason if it cannot be parsed completely."""

    commands: tuple[Command, ...] = ()
    trouble: str = ""
    tests: bool = False
    """Whether the script contains tests such as `[ -f x ]`."""

    def all_commands(self) -> "Iterator[Command]":
        """Yield all commands, including nested ones."""
        yield from _all_commands(self.commands)


def parse_script(script: str) -> ParsedScript:
    """Parse a script into its commands."""
    return _parse(script, 0)


def _all_commands(commands: tuple[Command, ...]) -> "Iterator[Command]":
    for command in commands:
        yield command
        yield from _all_commands(command.inner)


def _parse(script: str, depth: int, *, repeated: bool = False) -> ParsedScript:
    problems: list[str] = []
    if not _PRINTABLE.fullmatch(script) and any(_is_invisible(character) for character in script):
        problems.append("invisible characters")
    source = script.encode("utf-8", "replace")
    if len(source) > _MAX_BYTES:
        return ParsedScript(trouble=f"longer than {_MAX_BYTES >> 10} KiB")
    if depth > _MAX_NESTED_SCRIPTS:
        return ParsedScript(trouble="too many levels of nested scripts")
    reader = _TreeReader(source, depth, repeated=repeated)
    root = _bash_parser().parse(source).root_node
    if (source[: root.start_byte] + source[root.end_byte :]).strip(b" \t\n"):
        problems.append("unparsed text")
    reader.read_statement(root, 0)
    problems += reader.problems
    if sum(1 for _ in _all_commands(tuple(reader.commands))) > MAX_COMMANDS:
        problems.append(f"more than {MAX_COMMANDS} commands")
    if sum(map(_word_count, reader.commands)) > _MAX_WORDS:
        # Each word requires several file system lookups, so no command is checked.
        return ParsedScript(trouble=f"more than {_MAX_WORDS} words")
    return ParsedScript(tuple(reader.commands), problems[0] if problems else "", reader.has_tests)


def _word_count(command: Command) -> int:
    """Return the number of words, assignments and redirections of a command."""
    return len(command.words) + len(command.assignments) + len(command.redirections)


def _is_invisible(char: str) -> bool:
    return char not in " \n\t" and unicodedata.category(char) in _INVISIBLE_CATEGORIES


_parsers: "list[Parser]" = []


def _bash_parser() -> "Parser":
    if not _parsers:
        import tree_sitter_bash
        from tree_sitter import Language, Parser

        _parsers.append(Parser(Language(tree_sitter_bash.language())))
    return _parsers[0]


class _TreeReader:
    """Walks a syntax tree; records unsupported syntax as a problem and continues."""

    def __init__(self, source: bytes, depth: int, *, repeated: bool) -> None:
        self.source = source
        self.depth = depth
        self.commands: list[Command] = []
        self.problems: list[str] = []
        self.loop_depth = 1 if repeated else 0
        self.substitution_end: int | None = None
        self.has_tests = False

    def read_statement(self, node: "Node", depth: int) -> None:
        """Read a statement, or any node that contains statements."""
        if depth > _MAX_DEPTH:
            self.problems.append("nested too deeply")
            return
        kind = node.type
        if node.is_error or node.is_missing:
            self.problems.append("incomplete shell command")
        read_node = _NODE_READERS.get(kind)
        if read_node is not None:
            read_node(self, node, depth)
        elif kind in WORD_NODES:
            self.read_word(node, depth)
        else:
            following = self.source[node.end_byte : node.end_byte + 1]
            if kind in SEPARATED_WORDS and following.strip(b" \t\n;"):
                self.problems.append("ambiguous keyword")
            if kind not in CONTAINER_NODES and kind not in TOKEN_NODES and not node.is_error:
                self.problems.append(f"unsupported syntax ({kind})")
            self.read_children(node, depth)

    def read_loop(self, node: "Node", depth: int) -> None:
        """Read statements that may run more than once."""
        self.loop_depth += 1
        if node.type == "for_statement":
            name = node.child_by_field_name("variable")
            variable = (name.text or b"?").decode() if name is not None else "?"
            self.add_command(Command(assignments=(Assignment(variable, Word(UNKNOWN_PART)),)))
        self.read_children(node, depth)
        self.loop_depth -= 1

    def read_redirect(self, node: "Node", depth: int) -> None:
        """Read a redirection that belongs to a group, a loop, or no command."""
        self.add_command(Command(redirections=self.read_redirections([node], depth)))

    def read_children(self, node: "Node", depth: int) -> None:
        """Read the children of a node; only white space may be between them."""
        self.check_gaps(node)
        if node.type == "redirected_statement" and node.children[0].type == "command":
            self.read_command(node.children[0], depth + 1, node.children[1:])
            return
        if node.type == "command_substitution" and ODD_BACKQUOTES.match(node.text or b""):
            self.problems.append("quotes or comments inside backquotes")
        for child in node.children:
            self.read_statement(child, depth + 1)

    def check_gaps(self, node: "Node", blanks: bytes = b" \t\n") -> None:
        """Record text that the parser skipped."""
        position = node.start_byte if node.children else node.end_byte
        for child in node.children:
            if self.source[position : child.start_byte].strip(blanks):
                self.problems.append("unparsed text")
            position = child.end_byte
        if self.source[position : node.end_byte].strip(blanks):
            self.problems.append("unparsed text")

    def check_separation(self, node: "Node") -> None:
        """Check that adjacent nodes are separated; otherwise bash would read them as one word."""
        for previous, child in pairwise(node.children):
            if previous.end_byte == child.start_byte:
                self.problems.append("ambiguous word boundaries")

    def check_comment(self, node: "Node", _depth: int = 0) -> None:
        """Check that bash also treats a comment node as a comment."""
        preceding = self.source[node.start_byte - 1 : node.start_byte]
        if preceding not in {b"", b" ", b"\t", b"\n", b";"}:
            self.problems.append("ambiguous comment")

    def read_word(self, node: "Node", depth: int) -> Word:
        """Read a word and the command substitutions in it."""
        substitutions: list[Node] = []
        try:
            result = parse_word(node, substitutions)
        except UnsupportedSyntax as error:
            self.problems.append(str(error))
            result = Word(UNKNOWN_PART, splits=True)
            substitutions = list(_substitutions(node))
        self.read_substitutions(substitutions, depth)
        return result

    def read_substitutions(self, nodes: "Iterable[Node]", depth: int) -> None:
        """Read the commands of substitutions."""
        for node in nodes:
            outer_end, self.substitution_end = self.substitution_end, node.end_byte - 1
            self.read_children(node, depth + 1)
            self.substitution_end = outer_end

    def read_command(self, node: "Node", depth: int, trailing_redirects: "list[Node] | None" = None) -> None:
        """Read a simple command and the redirections after it."""
        self.check_gaps(node, b" \t")
        words: list[Word] = []
        assignments: list[Assignment] = []
        redirects: list[Node] = list(trailing_redirects or ())
        self.check_separation(node)
        for child in node.children:
            if child.type == "variable_assignment":
                assignments.append(self.read_assignment(child, depth))
            elif child.type == "command_name":
                words.append(self.read_word(child.children[0], depth))
            elif child.type in {"file_redirect", "herestring_redirect", "heredoc_redirect"}:
                redirects.append(child)
            elif child.type in WORD_NODES:
                words.append(self.read_word(child, depth))
            elif child.type == "comment":
                self.check_comment(child)
            else:
                self.problems.append(f"unsupported syntax ({child.type})")
                self.read_statement(child, depth + 1)
        redirections = self.read_redirections(redirects, depth)
        self.add_command(Command(words=tuple(words), assignments=tuple(assignments), redirections=redirections))

    def read_redirections(self, nodes: "list[Node]", depth: int) -> tuple[Redirection, ...]:
        """Read redirections; the node of a here-document also contains the rest of its line."""
        redirections: list[Redirection] = []
        for node in nodes:
            try:
                if node.type == "file_redirect":
                    file_redirection = parse_redirection(node, self.source)
                    if file_redirection is not None:
                        target = self.read_word(file_redirection[0], depth)
                        redirections.append(Redirection(writes=file_redirection[1], target=target))
                elif node.type == "herestring_redirect":
                    self.check_gaps(node, b" \t")
                    _, *parts = node.children
                    if len(parts) != 1 or node.children[0].type != "<<<":
                        self.problems.append("unsupported here-string")
                    for part in parts:
                        self.read_word(part, depth)
                elif node.type == "heredoc_redirect":
                    redirections += self.read_heredoc(node, depth)
                else:
                    self.read_statement(node, depth + 1)
            except UnsupportedSyntax as error:
                self.problems.append(str(error))
                self.read_nested_substitutions(node, depth)
        return tuple(redirections)

    def read_heredoc(self, node: "Node", depth: int) -> tuple[Redirection, ...]:
        """Read a here-document: commands in its text, and the rest of its line."""
        redirections: tuple[Redirection, ...] = ()
        check_heredoc(node, self.source, self.substitution_end)
        for child in node.children:
            if child.type == "heredoc_body":
                self.read_nested_substitutions(child, depth)
            elif child.type == "file_redirect":
                redirections += self.read_redirections([child], depth)
            elif child.type in WORD_NODES:
                # Further words of the command, which was read without them.
                self.problems.append("words after a here-document")
                self.read_word(child, depth)
            elif child.type not in {"<<", "<<-", "heredoc_start", "heredoc_end"}:
                self.read_statement(child, depth + 1)
        return redirections

    def read_nested_substitutions(self, node: "Node", depth: int) -> None:
        """Read the command substitutions in a node that is not a word."""
        self.read_substitutions(_substitutions(node), depth)

    def read_assignment(self, node: "Node", depth: int) -> Assignment:
        try:
            name, value = parse_assignment(node)
        except UnsupportedSyntax as error:
            self.problems.append(str(error))
            self.read_nested_substitutions(node, depth)
            return Assignment("?", Word(UNKNOWN_PART))
        return Assignment(name, self.read_word(value, depth) if value is not None else Word(""))

    def read_declaration(self, node: "Node", depth: int) -> None:
        """Read `NAME=value`, `export …`, `unset …`."""
        self.check_gaps(node)
        if node.type == "variable_assignment":
            self.add_command(Command(assignments=(self.read_assignment(node, depth),)))
            return
        self.check_separation(node)
        words: list[Word] = []
        for child in node.children:
            if child.type == "variable_assignment":
                assignment = self.read_assignment(child, depth)
                value = assignment.value
                words.append(Word(f"{assignment.name}={value.text}", splits=value.splits))
            elif child.type in WORD_NODES:
                words.append(self.read_word(child, depth))
            else:
                words.append(literal_word((child.text or b"").decode()))
        self.add_command(Command(words=tuple(words)))

    def read_test(self, node: "Node", depth: int) -> None:
        """Read `[ … ]` and `[[ … ]]`; some of their operators evaluate variables as code."""
        self.has_tests = True
        self.check_gaps(node, b" \t")
        opening, closing = node.children[0], node.children[-1]
        splits_matter = opening.type == "["
        edges = (self.source[opening.end_byte :][:1], self.source[: closing.start_byte][-1:])
        if closing.type not in {"]", "]]"} or any(edge_byte not in {b" ", b"\t"} for edge_byte in edges):
            self.problems.append("unsupported test")
        for child in node.children:
            self.read_test_expression(child, depth, splits_matter=splits_matter)

    def read_test_expression(self, node: "Node", depth: int, *, splits_matter: bool) -> None:
        if node.type in {"unary_expression", "binary_expression", "parenthesized_expression"}:
            self.check_gaps(node, b" \t")
            for child in node.children:
                self.read_test_expression(child, depth, splits_matter=splits_matter)
        elif node.type in WORD_NODES:
            if self.read_word(node, depth).splits and splits_matter:
                self.problems.append("test that depends on an unquoted variable")
        elif node.type == "test_operator":
            if (node.text or b"").decode() not in TEST_OPERATORS:
                self.problems.append("test operator that may run code in a variable")
        elif node.type not in COMPARISON_OPERATORS:
            self.problems.append(f"unsupported test ({node.type})")
            self.read_nested_substitutions(node, depth)

    def add_command(self, command: Command) -> None:
        """Add a command with its nested commands."""
        self.commands.append(self.with_nested_commands(command, 0, repeated=self.loop_depth > 0))

    def with_nested_commands(self, command: Command, depth: int, *, repeated: bool) -> Command:
        """Return a command with its nested commands at all levels."""
        if command.words and (not command.words[0].literal):
            self.problems.append("the program name depends on a variable")
        if command.program in RESERVED_WORDS:
            self.problems.append(f"unsupported syntax ({command.program})")
        if depth > _MAX_NESTED_SCRIPTS:
            self.problems.append("too many levels of nested commands")
            return command
        nested_commands = find_nested_commands(command)
        is_repeated = repeated or nested_commands.repeated
        inner = [self.with_nested_commands(nested, depth + 1, repeated=is_repeated) for nested in nested_commands.inner]
        for script in nested_commands.scripts:
            parsed_script = _parse(script, self.depth + 1, repeated=is_repeated)
            inner += parsed_script.commands
            self.problems += [parsed_script.trouble] if parsed_script.trouble else []
        return msgspec.structs.replace(
            command,
            repeated=repeated,
            inner=tuple(inner),
            redirections=(*command.redirections, *nested_commands.redirections),
            reach=nested_commands.reach,
            sealed=nested_commands.sealed,
            transparent=nested_commands.transparent,
        )


_NODE_READERS: "Final[Mapping[str, Callable[[_TreeReader, Node, int], None]]]" = {
    "command": _TreeReader.read_command,
    "while_statement": _TreeReader.read_loop,
    "for_statement": _TreeReader.read_loop,
    "function_definition": _TreeReader.read_loop,
    "variable_assignment": _TreeReader.read_declaration,
    "declaration_command": _TreeReader.read_declaration,
    "unset_command": _TreeReader.read_declaration,
    "test_command": _TreeReader.read_test,
    "comment": _TreeReader.check_comment,
    "file_redirect": _TreeReader.read_redirect,
    "herestring_redirect": _TreeReader.read_redirect,
    "heredoc_redirect": _TreeReader.read_redirect,
}


def _substitutions(node: "Node") -> "Iterator[Node]":
    """Yield the outermost command substitutions in a node."""
    if node.type in {"command_substitution", "process_substitution"}:
        yield node
        return
    for child in node.children:
        yield from _substitutions(child)
