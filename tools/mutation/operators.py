"""Lists the single changes ("mutants") of a module's source.

Every mutant replaces one span of the source text, so that line numbers and all other text stay the same. Annotations,
docstrings, `__all__`, texts of errors and log lines, and code under `TYPE_CHECKING` are excluded: they do not affect
behaviour. Except on Windows, code under `sys.platform == "win32"` is excluded as well.
"""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, cast

_COMPARE: Final[dict[type[ast.cmpop], tuple[str, ...]]] = {
    ast.Lt: ("<=", ">="),
    ast.LtE: ("<", ">"),
    ast.Gt: (">=", "<="),
    ast.GtE: (">", "<"),
    ast.Eq: ("!=",),
    ast.NotEq: ("==",),
    ast.In: ("not in",),
    ast.NotIn: ("in",),
    ast.Is: ("is not",),
    ast.IsNot: ("is",),
}
_BINARY: Final[dict[type[ast.operator], str]] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "//",
    ast.FloorDiv: "*",
    ast.Div: "*",
    ast.Mod: "*",
    ast.LShift: ">>",
    ast.RShift: "<<",
    ast.BitAnd: "|",
    ast.BitOr: "&",
    ast.BitXor: "&",
}
# Operators whose right side may be dropped: a set difference, an offset, a mask.
_DROPPABLE: Final = (ast.Add, ast.Sub, ast.BitAnd, ast.BitOr, ast.Mod)
_PROSE: Final = 3
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_NAMES: Final = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "startswith": "endswith",
    "endswith": "startswith",
    "find": "rfind",
    "rfind": "find",
    "lstrip": "rstrip",
    "rstrip": "lstrip",
    "bisect_left": "bisect_right",
    "bisect_right": "bisect_left",
    "partition": "rpartition",
    "rpartition": "partition",
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change: the replaced span of the source, and the replacement."""

    path: str
    line: int
    statement: int
    in_function: bool
    start: int
    end: int
    operator: str
    before: str
    after: str

    def apply(self, source: bytes) -> bytes:
        """Return the source with the change applied."""
        return source[: self.start] + self.after.encode() + source[self.end :]


def mutants(path: str, source: bytes) -> list[Mutant]:
    """Return every mutant of a module that compiles, in source order."""
    found = _Finder(path, source).all()
    return [mutant for mutant in found if _compiles(mutant, source)]


def _compiles(mutant: Mutant, source: bytes) -> bool:
    try:
        compile(mutant.apply(source), mutant.path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


class _Finder:
    """Walks the tree of a module and yields its mutants."""

    def __init__(self, path: str, source: bytes) -> None:
        self._path, self._source = path, source
        self._statement_line = 1
        self._functions = 0
        self._starts = [0]
        for line in source.split(b"\n"):
            self._starts.append(self._starts[-1] + len(line) + 1)

    def all(self) -> list[Mutant]:
        """Return the mutants in source order."""
        found = {
            (mutant.start, mutant.end, mutant.after): mutant
            for mutant in self._visit(ast.parse(self._source))
            if mutant.before != mutant.after
        }
        return [found[key] for key in sorted(found)]

    def _visit(self, node: ast.AST) -> Iterator[Mutant]:
        if self._is_inert(node):
            return
        if isinstance(node, ast.stmt):
            self._statement_line = node.lineno
        yield from self._changes(node)
        if isinstance(node, ast.Raise):
            return
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "type_params"):
                continue
            if name == "body" and _is_for_windows(node) and sys.platform != "win32":
                continue
            enters = name == "body" and isinstance(node, _FUNCTIONS)
            self._functions += enters
            children = cast("list[object]", value) if isinstance(value, list) else [value]
            for child in children:
                if isinstance(child, ast.AST) and not _is_docstring(child):
                    yield from self._visit(child)
            self._functions -= enters

    @staticmethod
    def _is_inert(node: ast.AST) -> bool:
        """Return whether a node is not executed, or only produces text for users."""
        if isinstance(node, ast.Import | ast.ImportFrom | ast.JoinedStr | ast.Assert):
            return True
        if isinstance(node, ast.Call):
            return isinstance(node.func, ast.Name) and node.func.id in ("cast", "TypeVar")
        if isinstance(node, ast.Subscript):
            return isinstance(node.value, ast.Name) and node.value.id == "Literal"
        if isinstance(node, ast.keyword):
            # An option of a struct class that only reduces garbage collection.
            return node.arg == "gc"
        if isinstance(node, ast.If):
            return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = {target.id for target in targets if isinstance(target, ast.Name)}
            return bool(names & {"__all__", "__slots__"}) or (
                isinstance(node, ast.AnnAssign) and _mentions(node.annotation, "TypeAlias")
            )
        return False

    def _changes(self, node: ast.AST) -> Iterator[Mutant]:
        match node:
            case ast.Compare():
                yield from self._compare(node)
            case ast.BoolOp():
                yield from self._boolean(node)
            case ast.BinOp():
                yield from self._binary(node)
            case ast.UnaryOp(op=ast.Not() | ast.USub()):
                yield self._replace(node, "drop sign", self._text(node.operand, wrap=True))
            case ast.Constant():
                yield from self._constant(node)
            case ast.If() | ast.IfExp() | ast.While():
                test = self._text(node.test)
                yield self._replace(node.test, "negate condition", f"(not ({test}))")
            case ast.Name() | ast.Attribute():
                yield from self._name(node)
            case _:
                yield from self._part(node)
                yield from self._statement(node)

    def _part(self, node: ast.AST) -> Iterator[Mutant]:
        match node:
            case ast.comprehension():
                for test in node.ifs:
                    yield self._replace(test, "drop filter", "True")
            case ast.Slice():
                yield from self._slice(node)
            case _:
                pass

    def _statement(self, node: ast.AST) -> Iterator[Mutant]:
        match node:
            case ast.Expr(value=ast.Call() | ast.Await()):
                yield self._replace(node, "drop call", "pass")
            case ast.AugAssign() | ast.Raise() | ast.Delete():
                yield self._replace(node, "drop statement", "pass")
            case ast.Return(value=ast.expr() as value):
                if not (isinstance(value, ast.Constant) and value.value is None):
                    yield self._replace(value, "return nothing", "None")
            case ast.Continue():
                yield self._replace(node, "leave the loop", "break")
            case ast.Break():
                yield self._replace(node, "stay in the loop", "continue")
            case ast.ExceptHandler(type=ast.Tuple(elts=elements)):
                for element in elements:
                    yield self._replace(element, "drop exception", "ZeroDivisionError")
            case _:
                pass

    def _compare(self, node: ast.Compare) -> Iterator[Mutant]:
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            start, end = self._end(left), self._start(right)
            before = self._source[start:end].decode()
            for after in _COMPARE[type(operator)]:
                opened = before.count("(") - before.count(")")
                text = f" {after} " + ("(" * opened if opened > 0 else "")
                if opened < 0:
                    text = ")" * -opened + text
                yield self._make(node.lineno, start, end, "comparison", text)
            left = right

    def _boolean(self, node: ast.BoolOp) -> Iterator[Mutant]:
        joint = " or " if isinstance(node.op, ast.And) else " and "
        parts = [self._text(value, wrap=True) for value in node.values]
        yield self._replace(node, "and/or", "(" + joint.join(parts) + ")")
        same = " and " if isinstance(node.op, ast.And) else " or "
        for leave_out in range(len(parts)):
            rest = [part for at, part in enumerate(parts) if at != leave_out]
            yield self._replace(node, "drop condition", "(" + same.join(rest) + ")")

    def _binary(self, node: ast.BinOp) -> Iterator[Mutant]:
        if isinstance(node.left, ast.Constant) and isinstance(node.left.value, str | bytes):
            return
        after = _BINARY.get(type(node.op))
        left, right = self._text(node.left, wrap=True), self._text(node.right, wrap=True)
        if after:
            yield self._replace(node, "arithmetic", f"({left} {after} {right})")
        if isinstance(node.op, _DROPPABLE):
            yield self._replace(node, "drop right side", left)

    def _constant(self, node: ast.Constant) -> Iterator[Mutant]:
        value = node.value
        if isinstance(value, bool):
            yield self._replace(node, "constant", str(not value))
        elif isinstance(value, int):
            yield self._replace(node, "constant", str(value + 1))
            if value > 1:
                yield self._replace(node, "constant", str(value - 1))
        elif isinstance(value, str | bytes) and not _is_prose(value):
            changed: str | bytes = "XX" if isinstance(value, str) else b"XX"
            yield self._replace(node, "constant", repr(changed if value != changed else value * 2))

    def _name(self, node: ast.Name | ast.Attribute) -> Iterator[Mutant]:
        if not isinstance(node.ctx, ast.Load):
            return
        name = node.id if isinstance(node, ast.Name) else node.attr
        if name in _NAMES:
            end = self._end(node)
            yield self._make(node.lineno, end - len(name), end, "function", _NAMES[name])

    def _slice(self, node: ast.Slice) -> Iterator[Mutant]:
        for bound in (node.lower, node.upper):
            if bound is not None:
                yield self._replace(bound, "drop bound", "")

    def _replace(self, node: ast.expr | ast.stmt, operator: str, after: str) -> Mutant:
        return self._make(node.lineno, self._start(node), self._end(node), operator, after)

    def _make(self, line: int, start: int, end: int, operator: str, after: str) -> Mutant:
        before = self._source[start:end].decode()
        inside = self._functions > 0
        return Mutant(self._path, line, self._statement_line, inside, start, end, operator, before, after)

    def _text(self, node: ast.expr, *, wrap: bool = False) -> str:
        text = self._source[self._start(node) : self._end(node)].decode()
        return f"({text})" if wrap and not isinstance(node, ast.Name | ast.Constant) else text

    def _start(self, node: ast.expr | ast.stmt) -> int:
        return self._starts[node.lineno - 1] + node.col_offset

    def _end(self, node: ast.expr | ast.stmt) -> int:
        return self._starts[(node.end_lineno or 1) - 1] + (node.end_col_offset or 0)


def _is_for_windows(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "sys.platform == 'win32'"


def _is_docstring(child: ast.AST) -> bool:
    return isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)


def _is_prose(value: str | bytes) -> bool:
    """Return whether a text is meant for users: it has at least three words."""
    text = value if isinstance(value, str) else value.decode("latin-1")
    return sum(word.isalpha() for word in text.split()) >= _PROSE


def _mentions(node: ast.AST, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node))
