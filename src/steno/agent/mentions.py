"""Files that a prompt names with `@`: they are read, and the model is told as if it had read them.

    look at @src/a.py, @src/, @src/a.py#L3-9 and @"a file.py"

What a rule denies is not shown, and a name of nothing stays a word. What the user names themselves
may lie anywhere; what stands in a command, or is piped in behind their words, only where files may
be read unasked.
"""

import asyncio
import os
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import msgspec

from steno.agent.events import Noticed
from steno.agent.gates import Kept
from steno.agent.recorder import new_id
from steno.agent.spoken import blocks_in
from steno.errors import StenoError
from steno.format.encode import encode
from steno.format.tool_catalogue import SHELL
from steno.guard.decision import Decision
from steno.tools.base import ToolFailure, ToolResult
from steno.tools.texts import place
from steno.tools.words import shown, size_words, spoken

if TYPE_CHECKING:
    from steno.agent.loop import Agent

__all__ = ["Mention", "attached", "mentions_of"]

_NAMED: Final = re.compile(r'(?:^|(?<=[\s(\[{]))@(?:"(?P<quoted>[^"\n]+)"|(?P<bare>[^\s"]+))')
_LINES: Final = re.compile(r"#L(?P<first>\d{1,9})(?:-L?(?P<last>\d{1,9}))?$")
_AGENT: Final = "agent-"
_ENDS: Final = ".,;:!?)]}'>`"
_MOST_MENTIONS: Final = 50
_MOST_SIZE: Final = 256 << 10
_MOST_NAMES: Final = 1_000
_CALLED: Final = "Called the {} tool with the following input: {}"
_RESULT: Final = "Result of calling the {} tool:\n{}"
_FRAMING: Final = {"enveloped": False}
"""How the client says that what the model read is not wrapped up once more."""
_CUT: Final = (
    "Note: The file {} was too large and has been truncated to the first {} lines. No need to "
    "mention the truncation. Use Read to read more of the file if you need."
)
_UNREAD: Final = (
    "The user @-mentioned {} ({}). It is not attached: {}. Read what you need of it with Read, or "
    "search in it with Grep."
)
_WANTED: Final = "The user wants the agent {!r} for this. Call it, and tell it what it has to know."


class Mention(msgspec.Struct, frozen=True):
    """A name behind an `@`, and the lines of it that are meant."""

    name: str
    first: int = 0
    last: int = 0
    """0 for all of them."""


def mentions_of(text: str) -> list[Mention]:
    """Return what a text names, in its order, each once.

    >>> [each.name for each in mentions_of('see @a.py, (@b) and @"c d#L2-3", not me@e.org')]
    ['a.py,', 'b)', 'c d']
    """
    names = (match["quoted"] or match["bare"] for match in _NAMED.finditer(text))
    return list(dict.fromkeys(map(_mention, names)))[:_MOST_MENTIONS]


def _mention(name: str) -> Mention:
    match = _LINES.search(name.rstrip(_ENDS))
    if match is None:
        return Mention(name)
    first = int(match["first"])
    return Mention(name[: match.start()], max(first, 1), max(int(match["last"] or first), 1))


async def attached(agent: "Agent", typed: str, others: Iterable[str] = ()) -> tuple[Kept, ...]:
    """Return what is kept of the files that the user names, and of those that are named for them."""
    own = mentions_of(typed.removesuffix(agent.piped))
    named = (*own, *mentions_of(typed), *map(_mention, others))
    kept: dict[str, Kept | None] = {}
    for mention in dict.fromkeys(named):
        path = next(filter(None, (_found(agent, each) for each in _readings(mention.name))), "")
        key = f"{path}#{mention.first}" if path else mention.name
        if key in kept:
            continue
        if path:
            kept[key] = await _look(agent, path, mention, free=mention in own)
        else:
            kept[key] = _wanted(agent, mention.name)
    return tuple(each for each in kept.values() if each is not None)


def _readings(name: str) -> Iterator[str]:
    """Yield what a name may mean: what stands behind it in a sentence may be part of it or not."""
    yield name
    while name and name[-1] in _ENDS:
        name = name[:-1]
        yield name


def _found(agent: "Agent", name: str) -> str:
    """Return the path of a file or a folder; nothing for what is none."""
    try:
        path = place(name, agent.caller.context)
    except ToolFailure:
        return ""
    return path if os.path.isfile(path) or os.path.isdir(path) else ""


def _wanted(agent: "Agent", name: str) -> Kept | None:
    """Return that a kind of sub-agent is wanted, if it is one."""
    kinds = (each.removeprefix(_AGENT) for each in _readings(name) if each.startswith(_AGENT))
    kind = next((each for each in kinds if each in agent.kinds), None)
    body = {"type": "agent_mention", "agentType": kind}
    return None if kind is None else Kept(body=body, words=_WANTED.format(kind))


async def _look(agent: "Agent", path: str, mention: Mention, *, free: bool) -> Kept | None:
    """Return what there is; nothing where it is not to be seen, which the user is told."""
    decision = agent.caller.guard.judge("Read", {"file_path": path}, cwd=agent.caller.context.cwd)
    reason = decision.reason
    if decision.verdict == "allow" or (free and decision.verdict == "ask"):
        one = _One(agent, path, mention, decision)
        try:
            return await (one.folder() if _is_folder(path) else one.file())
        except (StenoError, OSError, ValueError) as error:
            reason = str(error)
    agent.emit(Noticed(f"{shown(path)} is not attached: {reason}", "warning"))
    return None


class _One:
    """One thing that is mentioned."""

    def __init__(self, agent: "Agent", path: str, mention: Mention, decision: Decision) -> None:
        self._agent = agent
        self._context = agent.caller.context
        self._path = path
        self._mention = mention
        self._decision = decision
        self._shown = {"displayPath": spoken(os.path.relpath(path, self._context.cwd))}

    async def folder(self) -> Kept | None:
        """Return the names in a folder, but for those that are kept from being read."""
        path = self._path
        names = await asyncio.to_thread(os.listdir, path)
        may_show = self._context.shown_in(path)
        seen = sorted(spoken(name) for name in names if may_show(name))
        if names and not seen:
            return None
        listed = "\n".join(seen[:_MOST_NAMES])
        if len(seen) > _MOST_NAMES:
            listed += f"\n… and {len(seen) - _MOST_NAMES:,} more"
        body = {"type": "directory", "path": spoken(path), "content": listed, **self._shown}
        given = {"command": f"ls {spoken(path)}", "description": f"Lists files in {spoken(path)}"}
        return Kept(body=body, parts=(_called(SHELL, given), _RESULT.format(SHELL, listed)))

    async def file(self) -> Kept:
        """Return what is in a file, or, where that is much, that it is there."""
        size = _size(self._path)
        if size > _MOST_SIZE and not self._mention.first and not _is_picture(self._path):
            return self._unread(size, "it is too large to be read at once")
        outcome = await self._read()
        kind = outcome.detail["type"]
        if kind not in {"text", "image", "notebook"}:
            return self._unread(size, "it is not a text")
        body = {"type": "file", "filename": spoken(self._path), "content": outcome.detail}
        called = _called("Read", {"file_path": spoken(self._path)})
        if kind == "image":
            (block,) = blocks_in(outcome.content)
            if not self._agent.talk.has_room_for(block):
                return self._unread(size, "there are many images already")
            return Kept(
                body={**body, **self._shown, "savedCopyFraming": _FRAMING},
                parts=(called,),
                image=block,
            )
        parts = [called, _RESULT.format("Read", _words(outcome))]
        file = outcome.detail["file"]
        if kind == "text" and not self._mention.first and file["numLines"] < file["totalLines"]:
            body["truncated"] = True
            parts.append(_CUT.format(spoken(self._path), file["numLines"]))
        return Kept(body={**body, **self._shown, "savedCopyFraming": _FRAMING}, parts=tuple(parts))

    async def _read(self) -> ToolResult:
        from steno.tools.read import Read

        given: dict[str, Any] = {"file_path": self._path}
        first, last = self._mention.first, self._mention.last
        if first:
            given |= {"offset": first, "limit": max(last - first + 1, 1)}
        call = new_id()
        # What is opened must be what was judged, wherever its path leads by then.
        self._context.judged[call] = self._decision.paths
        try:
            return await Read().run(given, self._context, call)
        finally:
            self._context.judged.pop(call, None)

    def _unread(self, size: int, why: str) -> Kept:
        path = spoken(self._path)
        body = {
            "type": "at_mention_reference",
            "mentions": [path],
            "unread": "too_large",
            "fileSize": size,
            **self._shown,
        }
        return Kept(body=body, words=_UNREAD.format(path, size_words(size), why))


def _called(tool: str, given: dict[str, str]) -> str:
    return _CALLED.format(tool, encode(given).decode("utf-8"))


def _words(outcome: ToolResult) -> str:
    """Return what the model reads of a file; of a notebook its cells, without the pictures."""
    content, file = outcome.content, outcome.detail["file"]
    if file.get("content"):
        lines = enumerate(file["content"].split("\n"), file["startLine"])
        return "\n".join(f"{number}\t{line}" for number, line in lines)
    if isinstance(content, str):
        return content
    return encode([each for each in content if each.get("type") == "text"]).decode("utf-8")


def _is_folder(path: str) -> bool:
    return os.path.isdir(path)


def _size(path: str) -> int:
    return os.path.getsize(path)


def _is_picture(path: str) -> bool:
    from steno.tools.images import media_type_of

    with open(path, "rb") as file:
        return bool(media_type_of(file.read(1 << 12)))
