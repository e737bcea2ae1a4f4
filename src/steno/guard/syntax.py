"""What the parts of a parsed shell line stand for: words, assignments, redirections."""

import re
from typing import TYPE_CHECKING, Final

from steno.errors import StenoError
from steno.guard.words import HOLE, Word

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tree_sitter import Node

__all__ = ["Trouble", "assignment", "heredoc", "redirection", "word"]

_PLAIN_WORD: Final = re.compile(r"(?:[A-Za-z0-9_./:=@%+,~^*?\[\]{}!#-]|[^\x00-\x7f]|\\[^\n])*")
_SPECIAL: Final = re.compile(r"\\(.)|([*?])|(\[.*)", re.DOTALL)
_IN_STRING: Final = re.compile(r"\\([$`\"\\])")
_PARAMETER: Final = re.compile(
    r"\$(?:[A-Za-z_]\w*|[0-9?#$!@*-])"
    r"|\$\{(?:[A-Za-z_]\w*|[0-9]+|#[A-Za-z_]\w*)"
    r"(?:(?::-|:\+|-|\+|%%?|##?)[A-Za-z0-9_./*-]*)?\}",
    re.ASCII,
)
_SUM: Final = re.compile(r"\$\(\([0-9 +*/%-]*\)\)", re.ASCII)
_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_DELIMITER: Final = re.compile(r"([\"']?)([A-Za-z_]\w*)\1", re.ASCII)
_WRITES: Final = {"<": False, ">": True, ">>": True, "&>": True, "&>>": True, ">|": True}
_OPERATOR_AND_TARGET: Final = 2
_REDIRECTED: Final = re.compile(rb"[0-9]*[<>&]")
_DESCRIPTOR: Final = re.compile(rb"(?:^|[ \t\n;&|({`])[0-9]+$")
_COPIES: Final = frozenset({">&", "<&"})


class Trouble(StenoError):
    """A piece of shell that is not understood."""


def word(node: "Node", found: "list[Node]") -> Word:
    """Return what a node of a word stands for; substitutions in it are added to `found`.

    Raises:
        Trouble: it may mean something else to the shell than it seems.
    """
    if node.is_error or node.is_missing or node.has_error:
        raise Trouble("it is no complete shell command")
    kind = node.type
    if kind in {"concatenation", "array"}:
        return _joined(node, found) if kind == "concatenation" else _listed(node, found)
    if kind in {"word", "number", "variable_name", "regex", "extglob_pattern"}:
        return _bare(_text(node))
    if kind == "raw_string":
        return Word(_text(node)[1:-1])
    if kind == "string":
        return _quoted(node, found)
    if kind in {"simple_expansion", "expansion"}:
        return _parameter(node)
    if kind in {"command_substitution", "process_substitution"}:
        found.append(node)
        return Word(HOLE, splits=kind == "command_substitution")
    if kind == "arithmetic_expansion" and _SUM.fullmatch(_text(node)):
        return Word(HOLE)
    raise Trouble(f"it has a word that is not judged here ({kind})")


def assignment(node: "Node") -> "tuple[str, Node | None]":
    """Return the name that is set, and the node of its value.

    Raises:
        Trouble: what is set is no plain variable.
    """
    name = node.child_by_field_name("name")
    if node.has_error or name is None or not _NAME.fullmatch(_text(name)):
        raise Trouble("it sets something that is no plain variable")
    _, equals, *rest = node.children
    value = rest[0] if rest else None
    if value is not None and value.start_byte != equals.end_byte:
        raise Trouble("it sets a variable in a way that is not judged here")
    return _text(name), value


def redirection(node: "Node", source: bytes) -> "tuple[Node, bool] | None":
    """Return the file that is redirected to or from and whether it is written; None for no file.

    Raises:
        Trouble: it is no plain redirection.
    """
    parts = [child for child in node.children if child.type != "file_descriptor"]
    if source[node.end_byte : node.end_byte + 1].strip(b" \t\n;&|)`"):
        raise Trouble("it has a redirection that is not judged here")
    if not node.text or not _REDIRECTED.match(node.text):
        raise Trouble("it has a redirection that is not judged here")
    if node.text[:1].isdigit() and source[: node.start_byte][-1:].strip(b" \t\n;&|({"):
        raise Trouble("it has a redirection that is not judged here")
    if not node.text[:1].isdigit() and _DESCRIPTOR.search(source[: node.start_byte]):
        # The parser takes the 0 of `cat 0<a` for a word, and bash for a file descriptor.
        raise Trouble("it has a redirection that is not judged here")
    if re.fullmatch(rb"[0-9]*[<>]&-", node.text):
        return None
    if len(parts) != _OPERATOR_AND_TARGET or node.has_error:
        raise Trouble("it has a redirection that is not judged here")
    operator, target = parts
    if operator.type in _COPIES and re.fullmatch(r"[0-9]+|-", _text(target)):
        return None
    # bash expands other words after `>&` twice, even in single quotes.
    if operator.type not in _WRITES:
        raise Trouble("it has a redirection that is not judged here")
    return target, _WRITES[operator.type]


def heredoc(node: "Node", source: bytes, outer: int | None) -> None:
    """See that a here-document ends where bash ends it, and that its text hides nothing.

    `outer` is where the substitution ends that it stands in: bash loses separators behind a
    here-document in there.

    Raises:
        Trouble: bash may read it in another way.
    """
    parts = {child.type: child for child in node.children}
    start, body, end = (parts.get(f"heredoc_{name}") for name in ("start", "body", "end"))
    if node.has_error or start is None or end is None or "<<" not in parts:
        raise Trouble("it has a here-document that is not judged here")
    given = _DELIMITER.fullmatch(_text(start))
    before = source[: node.start_byte][-1:]
    opened = source[node.start_byte : start.start_byte].rstrip(b" \t")
    if given is None or opened != b"<<" or before.strip(b" \t\n"):
        raise Trouble("it has a here-document that is not judged here")
    if [child.type for child in node.children].count("heredoc_redirect"):
        raise Trouble("it has several here-documents in one line")
    line_end = source.find(b"\n", start.end_byte)
    lines = source[line_end + 1 : end.start_byte].split(b"\n")
    delimiter = given[2].encode()
    after = source[end.end_byte : end.end_byte + 1]
    if delimiter in lines or lines[-1] or after not in {b"", b"\n"}:
        raise Trouble("it has a here-document that may end elsewhere")
    if source[end.start_byte : end.end_byte] != delimiter:
        raise Trouble("it has a here-document that may end elsewhere")
    if outer is not None and source[end.end_byte : outer].strip(b" \t\n"):
        raise Trouble("it has a here-document that may end elsewhere")
    behind = source[start.end_byte : line_end]
    if b"<<" in behind or re.search(rb"[\\#`'\"]", behind):
        raise Trouble("it has a here-document whose first line is not judged here")
    if body is not None and body.start_byte < line_end:
        raise Trouble("it has a here-document that may begin elsewhere")
    text = source[line_end + 1 : end.start_byte]
    if not given[1] and re.search(rb"[\\`]|\$[({\[]", text):
        raise Trouble("it has a here-document that runs or expands things")


def _text(node: "Node") -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _joined(node: "Node", found: "list[Node]") -> Word:
    at = node.start_byte
    parts: list[Word] = []
    bare: list[str] = []
    for child in node.children:
        if child.start_byte != at:
            raise Trouble("it has a word with something in it that the parser passes over")
        at = child.end_byte
        # A lone `$` before a quote is a node of its own, and changes what the quotes mean.
        if child.type == "$":
            raise Trouble("it has quotes that are not judged here")
        parts.append(word(child, found))
        if child.type in {"word", "number"}:
            bare.append(_text(child))
    _refuse_braces("".join(bare))
    return Word(
        "".join(part.text for part in parts),
        splits=any(part.splits for part in parts),
        tilde=parts[0].tilde and (len(parts) == 1 or parts[0].text.startswith("~/")),
        glob=all(part.glob for part in parts if part.splits),
    )


def _listed(node: "Node", found: "list[Node]") -> Word:
    for child in node.named_children:
        word(child, found)
    return Word(HOLE, splits=True)


def _refuse_braces(text: str) -> None:
    if "{" in text and ("," in text or ".." in text):
        raise Trouble("it has braces that become several words")
    if re.fullmatch(r"\{\w+\}", text):
        raise Trouble("it has braces that may name a file descriptor")


def _bare(text: str) -> Word:
    if not _PLAIN_WORD.fullmatch(text) or text.startswith("#"):
        raise Trouble("it has a word with characters that are not judged here")
    _refuse_braces(re.sub(r"\\.", "", text))
    if re.search(r"[=:]~", text):
        raise Trouble("it has a ~ that may stand for a folder")
    tilde = text == "~" or text.startswith("~/")
    if text.startswith("~") and not tilde:
        raise Trouble("it has a ~ that may stand for a folder")
    if re.search(r"(?<!\\)(?:\\\\)*[*?\[]", text):
        return Word(_SPECIAL.sub(_opened, text), splits=True, tilde=tilde, glob=True)
    return Word(re.sub(r"\\(.)", r"\1", text), tilde=tilde)


def _opened(match: "re.Match[str]") -> str:
    return match[1] if match[1] is not None else HOLE


def _parameter(node: "Node") -> Word:
    text = _text(node)
    if not _PARAMETER.fullmatch(text):
        raise Trouble("it has an expansion that is not judged here")
    if re.match(r"\$\{?#?IFS\b", text):
        raise Trouble("it uses IFS, which can put words together")
    return Word(HOLE, splits=True)


def _quoted(node: "Node", found: "list[Node]") -> Word:
    """Return the value of a double-quoted string, made of its bytes and not only of its nodes."""
    source = node.text or b""
    holes = [child for child in node.children if child.type not in {'"', "string_content", "$"}]
    at = 1
    parts: list[str] = []
    for child in holes:
        begin = child.start_byte - node.start_byte
        parts += [_unquoted(source[at:begin]), word(child, found).text]
        at = child.end_byte - node.start_byte
        if child.type == "simple_expansion" and source[at : at + 1] in {b"(", b"{", b"["}:
            raise Trouble("it has a quoted word that is not judged here")
    parts.append(_unquoted(source[at:-1]))
    return Word("".join(parts), splits="$@" in parts or _has_list(holes))


def _has_list(nodes: "Iterable[Node]") -> bool:
    return any("@" in _text(node) for node in nodes if node.type.endswith("expansion"))


def _unquoted(raw: bytes) -> str:
    text = raw.decode("utf-8", "replace")
    bare = _IN_STRING.sub("", text)
    if (
        "\\\n" in bare
        or '"' in bare
        or "`" in bare
        or re.search(r"\$[A-Za-z_0-9({\[?#!@*$-]", bare)
    ):
        raise Trouble("it has a quoted word that is not judged here")
    return _IN_STRING.sub(r"\1", text)
