"""A script as a file, JSON or TOML, for those who do not write Python.

otherwise = { text = "I have no answer to this." }

[[scene]]
on = "fix the bug"

[[scene.answer]]
blocks = [{ text = "I look." }, { tool = "Read", input = { file_path = "a.py" } }]

[[scene.answer]]
text = "Fixed."
first = [{ status = 529, times = 2 }]
"""

import re
from typing import Any

import msgspec

from steno.errors import BadRequest
from steno.model.server.minds import (
    PING,
    Failure,
    Item,
    Pause,
    Reply,
    bad_tool,
    error,
    redacted,
    search,
    text,
    thinking,
    tool,
)
from steno.model.server.script import Script, Wanted

__all__ = ["read_script"]


class _Found(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    title: str
    url: str


class _Block(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    text: str | None = None
    thinking: str | None = None
    redacted: str | None = None
    tool: str | None = None
    input: dict[str, Any] = {}
    json: str | None = None
    id: str = ""
    pause: float | None = None
    ping: bool = False
    search: str | None = None
    found: list[_Found] = []
    error_code: str = ""

    def items(self) -> tuple[Item, ...]:
        if self.search is None:
            return (self.item(),)
        found = ((each.title, each.url) for each in self.found)
        return search(self.search, *found, tool_id=self.id, error_code=self.error_code)

    def item(self) -> Item:
        if self.text is not None:
            return text(self.text)
        if self.thinking is not None:
            return thinking(self.thinking)
        if self.redacted is not None:
            return redacted(self.redacted)
        if self.tool is not None and self.json is not None:
            return bad_tool(self.tool, self.json, self.id)
        if self.tool is not None:
            return tool(self.tool, self.id, **self.input)
        if self.pause is not None:
            return Pause(self.pause)
        if self.ping:
            return PING
        raise BadRequest("a block of the script is nothing", hint="say text, thinking, tool, …")


class _Failure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    status: int = 529
    kind: str = ""
    message: str = ""
    retry_after: float | None = None
    times: int = 1

    def failure(self) -> Failure:
        return error(self.status, self.message, kind=self.kind, retry_after=self.retry_after)


class _Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    text: str | None = None
    blocks: list[_Block] = []
    error: _Failure | None = None
    first: list[_Failure] = []
    stop_reason: str = ""
    stop_sequence: str | None = None
    usage: dict[str, Any] = {}
    model: str = ""
    delay: float | None = None
    cut_after: int | None = None

    def answer(self) -> Reply | Failure:
        after = None if self.delay is None else Pause(self.delay)
        if self.error is not None:
            return msgspec.structs.replace(self.error.failure(), after=after)
        content = [] if self.text is None else [text(self.text)]
        return Reply(
            content=(*content, *(item for block in self.blocks for item in block.items())),
            stop_reason=self.stop_reason,
            stop_sequence=self.stop_sequence,
            usage=self.usage,
            model=self.model,
            after=after,
            cut_after=self.cut_after,
        )

    def before(self) -> list[Failure]:
        return [each.failure() for each in self.first for _ in range(each.times)]


class _Scene(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    answer: list[_Answer]
    on: str | None = None
    regex: str | None = None
    request: int | None = None

    def wanted(self) -> Wanted:
        if self.request is not None:
            return self.request
        if self.regex is None:
            return self.on or ""
        try:
            return re.compile(self.regex)
        except re.error as bad:
            raise BadRequest(f"the script's regex {self.regex!r} is none: {bad}") from bad


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    scene: list[_Scene] = []
    queue: list[_Answer] = []
    otherwise: _Answer | None = None


def read_script(data: bytes, name: str = "the script") -> Script:
    """Return the script in a file; what begins with a brace is JSON, anything else TOML.

    Raises:
        BadRequest: it is none.
    """
    decode = msgspec.json.decode if data.lstrip().startswith(b"{") else msgspec.toml.decode
    try:
        file = decode(data, type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError) as bad:
        raise BadRequest(f"{name} is no script: {bad}") from bad
    script = Script(*(each.answer() for each in file.queue))
    for scene in file.scene:
        _add(script, scene)
    if file.otherwise is not None:
        script.otherwise(file.otherwise.answer(), first=file.otherwise.before())
    return script


def _add(script: Script, scene: _Scene) -> None:
    for place, answer in enumerate(scene.answer):
        if place:
            script.then(answer.answer(), first=answer.before())
        else:
            script.on(scene.wanted(), answer.answer(), first=answer.before())
