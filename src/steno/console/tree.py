"""A session as a small tree: its last prompts, and what was begun beside them and left."""

from collections.abc import Iterator
from typing import Final

from steno.report import words
from steno.safe.terminal import Line, one_line
from steno.session.nodes import Node
from steno.session.session import Session
from steno.session.story.branches import Branch
from steno.session.story.prompts import STARTS, origin_of, prompt_of
from steno.session.story.turns import Turn

__all__ = ["tree_lines"]

_DEEPEST: Final = 3
_SHOWN: Final = frozenset(("human", "command", "shell"))


def tree_lines(session: Session, columns: int, most: int = 4) -> list[Line]:
    """Return the last prompts of a session, each with the branches that leave the talk behind it."""
    turns = [turn for turn in session.turns() if turn.prompt and turn.prompt.origin in _SHOWN]
    if not turns:
        return [[("  there is no conversation in it", "yellow")]]
    branches = [each for each in session.branches if _first(each)]
    shown = turns[-most:]
    tree = _Tree(branches, columns)
    lines: list[Line] = []
    for turn in shown:
        said = turn.prompt.text if turn.prompt else ""
        # What was taken back before anything else stands above what took its place.
        if turn is turns[0]:
            lines += tree.behind([None])
        lines.append([("  │ ", "blue"), one_line(said, max(columns - 4, 10))])
        lines += tree.behind(_nodes(turn))
    head = f"  {words.count(len(turns), 'prompt')}"
    if branches:
        above = len(branches) - tree.told
        more = f", {above} of them further up" if above else ""
        head += f", {words.count(len(branches), 'branch', 'branches')} abandoned{more}"
    tail = "; the last ones:" if len(turns) > len(shown) else ":"
    return [[(head + tail, "dim")], *lines]


class _Tree:
    """The branches of a session, by the record that they leave it behind."""

    def __init__(self, branches: list[Branch], columns: int) -> None:
        self._columns = columns
        self._behind: dict[str | None, list[Branch]] = {}
        self.told = 0
        for branch in branches:
            name = branch.fork.uuid if branch.fork is not None else None
            self._behind.setdefault(name, []).append(branch)

    def behind(self, names: list[str | None], depth: int = 0) -> Iterator[Line]:
        """Yield what leaves the talk behind some records, and what leaves that."""
        for name in names:
            for branch in self._behind.pop(name, []):
                self.told += 1
                yield self._line(branch, depth)
                if depth < _DEEPEST:
                    yield from self.behind([node.uuid for node in branch.nodes], depth + 1)

    def _line(self, branch: Branch, depth: int) -> Line:
        size = f"  {words.count(branch.turns, 'turn')}, abandoned"
        bars = "  │ " + "  " * depth
        room = max(self._columns - len(bars) - len(size) - 4, 10)
        return [(bars, "blue"), ("└ ", "yellow"), one_line(_first(branch), room), (size, "dim")]


def _nodes(turn: Turn) -> list[str | None]:
    return [node.uuid for node in turn.nodes]


def _first(branch: Branch) -> str:
    """Return the prompt that a branch begins with; nothing where nobody said anything in it."""
    for node in branch.nodes:
        words_said = _prompt(branch, node)
        if words_said:
            return words_said
    return ""


def _prompt(branch: Branch, node: Node) -> str:
    if node.type != "user" or node.meta or node.results:
        return ""
    record = branch.transcript.record(node)
    origin = origin_of(record)
    return prompt_of(record, node, origin).text.strip() if origin in STARTS else ""
