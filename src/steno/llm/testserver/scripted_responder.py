"""The scripted responder: replies to prompts from a script in Python, JSON or TOML.

    script = ScriptedResponder()
    script.on("fix the bug", [text("I look."), tool("Read", file_path="a.py")]).then("Fixed.")

A scene starts with the last user prompt and continues with each reply to it. Equal requests get equal replies, also
when retried or sent in parallel. As a file:

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
from collections.abc import Callable, Sequence
from typing import Any, Final, Self, TypeAlias, TypedDict, Unpack

import msgspec

from steno.errors import BadRequest
from steno.llm.testserver.responders import (
    PING,
    Answer,
    ErrorReply,
    Pause,
    Reply,
    ReplyItem,
    ResponderRequest,
    Wait,
    error_reply,
    invalid_tool_call,
    redacted_thinking,
    search,
    text,
    thinking,
    tool,
)

DEFAULT_REPLY: Final = "(the script has no reply for this prompt)"
"""The reply if nothing matches."""
_MAX_UNMATCHED: Final = 100

PlainReply: TypeAlias = str | ReplyItem | Sequence[str | ReplyItem] | Answer
ReplySource: TypeAlias = PlainReply | Callable[[ResponderRequest], PlainReply]
"""A reply: text, one or several blocks, a complete reply, an error, or a function that returns one."""
PromptMatcher: TypeAlias = str | int | re.Pattern[str] | Callable[[ResponderRequest], bool]
"""Condition of a scene: text in the prompt, the number of the request, or a function."""


class ReplyOptions(TypedDict, total=False):
    """Options for sending a reply; see `Reply`."""

    stop_reason: str
    stop_sequence: str | None
    usage: dict[str, Any]
    model: str
    id: str
    after: Wait | None
    cut_after: int | None
    breaks: ErrorReply | None
    first: Sequence[ReplySource]
    """Replies sent before the reply itself, once each, such as errors and cut connections."""


class _ScriptedReply:
    """One reply, and the replies sent before it."""

    def __init__(self, source: ReplySource, options: ReplyOptions) -> None:
        self._first = list(options.pop("first", ()))
        self._source = source
        self._options = options

    def answer(self, request: ResponderRequest) -> Answer:
        if self._first:
            return to_reply(self._first.pop(0), request)
        return to_reply(self._source, request, **self._options)


class _Scene(msgspec.Struct):
    """A condition and its replies in order."""

    matcher: PromptMatcher
    steps: list[_ScriptedReply]

    def matches(self, request: ResponderRequest) -> bool:
        matcher = self.matcher
        if isinstance(matcher, str):
            return matcher in request.prompt
        if isinstance(matcher, int):
            return matcher == request.number
        if isinstance(matcher, re.Pattern):
            return matcher.search(request.prompt) is not None
        return matcher(request)


class ScriptedResponder:
    """Answers requests from a script."""

    def __init__(self, *answers: ReplySource) -> None:
        self._scenes: list[_Scene] = []
        self._queue = [_ScriptedReply(answer, {}) for answer in answers]
        self._default = _ScriptedReply(DEFAULT_REPLY, {})
        self.unmatched: list[str] = []
        """The last prompts without a matching scene."""

    def on(self, matcher: PromptMatcher, source: ReplySource, **options: Unpack[ReplyOptions]) -> Self:
        """Start a scene with the first reply to a prompt, or to the request with that number."""
        self._scenes.append(_Scene(matcher, [_ScriptedReply(source, options)]))
        return self

    def then(self, source: ReplySource, **options: Unpack[ReplyOptions]) -> Self:
        """Continue the scene with the reply to the tool results.

        Raises:
            BadRequest: there is no scene yet.
        """
        if not self._scenes:
            raise BadRequest("`then` requires a scene", hint="Call `on` first.")
        self._scenes[-1].steps.append(_ScriptedReply(source, options))
        return self

    def queue(self, *answers: ReplySource) -> Self:
        """Add replies that are used in order if no scene matches."""
        self._queue += [_ScriptedReply(answer, {}) for answer in answers]
        return self

    def otherwise(self, source: ReplySource, **options: Unpack[ReplyOptions]) -> Self:
        """Set the reply if nothing else matches."""
        self._default = _ScriptedReply(source, options)
        return self

    def answer(self, request: ResponderRequest) -> Answer:
        """Return the reply of the first matching scene, else the next queued one."""
        scripted_reply = self._next_reply(request)
        if scripted_reply is None:
            self.unmatched = [*self.unmatched, request.prompt][-_MAX_UNMATCHED:]
        return (scripted_reply or self._default).answer(request)

    def _next_reply(self, request: ResponderRequest) -> _ScriptedReply | None:
        for scene in self._scenes:
            if scene.matches(request):
                # A request number identifies one request; a prompt can have several replies.
                index = 0 if isinstance(scene.matcher, int) else request.reply_count
                if index < len(scene.steps):
                    return scene.steps[index]
        return self._queue.pop(0) if self._queue else None

    def accepts_thinking(self, thinking: str, signature: str) -> bool:
        """Accept only thinking signed by the server."""
        _ = thinking, signature
        return False


def to_reply(source: ReplySource, request: ResponderRequest, **options: Unpack[ReplyOptions]) -> Answer:
    """Convert a source to a reply with `options` applied."""
    reply = source(request) if callable(source) else source
    changes = {key: value for key, value in options.items() if key != "first"}
    if isinstance(reply, ErrorReply):
        return msgspec.structs.replace(reply, after=changes.get("after") or reply.after)
    if isinstance(reply, Reply):
        return msgspec.structs.replace(reply, **changes)
    items = [reply] if isinstance(reply, str) or not isinstance(reply, Sequence) else reply
    content = tuple(text(item) if isinstance(item, str) else item for item in items)
    return msgspec.structs.replace(Reply(content=content), **changes)


class _SearchPage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    title: str
    url: str


class _BlockTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
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
    found: list[_SearchPage] = []
    error_code: str = ""

    def items(self) -> tuple[ReplyItem, ...]:
        if self.search is None:
            return (self.item(),)
        pages = ((page.title, page.url) for page in self.found)
        return search(self.search, *pages, tool_id=self.id, error_code=self.error_code)

    def item(self) -> ReplyItem:
        if self.text is not None:
            return text(self.text)
        if self.thinking is not None:
            return thinking(self.thinking)
        if self.redacted is not None:
            return redacted_thinking(self.redacted)
        if self.tool is not None and self.json is not None:
            return invalid_tool_call(self.tool, self.json, self.id)
        if self.tool is not None:
            return tool(self.tool, self.id, **self.input)
        if self.pause is not None:
            return Pause(self.pause)
        if self.ping:
            return PING
        raise BadRequest("empty block in the script", hint="Set text, thinking, tool, …")


class _ErrorTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    status: int = 529
    kind: str = ""
    message: str = ""
    retry_after: float | None = None
    times: int = 1

    def to_error_reply(self) -> ErrorReply:
        return error_reply(self.status, self.message, kind=self.kind, retry_after=self.retry_after)


class _AnswerTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    text: str | None = None
    blocks: list[_BlockTable] = []
    error: _ErrorTable | None = None
    first: list[_ErrorTable] = []
    stop_reason: str = ""
    stop_sequence: str | None = None
    usage: dict[str, Any] = {}
    model: str = ""
    delay: float | None = None
    cut_after: int | None = None

    def to_reply_value(self) -> Reply | ErrorReply:
        after = None if self.delay is None else Pause(self.delay)
        if self.error is not None:
            return msgspec.structs.replace(self.error.to_error_reply(), after=after)
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

    def first_replies(self) -> list[ErrorReply]:
        return [failure.to_error_reply() for failure in self.first for _ in range(failure.times)]


class _SceneTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    answer: list[_AnswerTable]
    on: str | None = None
    regex: str | None = None
    request: int | None = None

    def matcher(self) -> PromptMatcher:
        if self.request is not None:
            return self.request
        if self.regex is None:
            return self.on or ""
        try:
            return re.compile(self.regex)
        except re.error as regex_error:
            raise BadRequest(f"invalid regex {self.regex!r} in the script: {regex_error}") from regex_error


class _ScriptFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    scene: list[_SceneTable] = []
    queue: list[_AnswerTable] = []
    otherwise: _AnswerTable | None = None


def parse_script_file(data: bytes, name: str = "the script") -> ScriptedResponder:
    """Parse a script file; it is JSON if it starts with a brace, else TOML.

    Raises:
        BadRequest: the file is not a valid script.
    """
    decode = msgspec.json.decode if data.lstrip().startswith(b"{") else msgspec.toml.decode
    try:
        file = decode(data, type=_ScriptFile)
    except (msgspec.DecodeError, UnicodeDecodeError) as decode_error:
        raise BadRequest(f"{name} is not a valid script: {decode_error}") from decode_error
    script = ScriptedResponder(*(reply.to_reply_value() for reply in file.queue))
    for scene in file.scene:
        _add_scene(script, scene)
    if file.otherwise is not None:
        script.otherwise(file.otherwise.to_reply_value(), first=file.otherwise.first_replies())
    return script


def _add_scene(script: ScriptedResponder, scene: _SceneTable) -> None:
    for index, answer in enumerate(scene.answer):
        if index:
            script.then(answer.to_reply_value(), first=answer.first_replies())
        else:
            script.on(scene.matcher(), answer.to_reply_value(), first=answer.first_replies())
