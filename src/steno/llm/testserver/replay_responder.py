"""The replay responder: replays the responses of recorded sessions and reports differences."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Literal, TypeAlias

import msgspec

from steno.format.lenient_json import as_list, as_object
from steno.format.message import SYNTHETIC
from steno.llm.testserver.responders import Answer, Reply, ReplyBlock, ResponderRequest, search, text, user_text
from steno.session.session import Session
from steno.session.transcript import Node, Transcript

_SUMMARY_SUFFIX: Final = "\n\nIf you need specific details"
_REMINDERS: Final = re.compile(r"\s*<system-reminder>.*?</system-reminder>\s*", re.DOTALL)

_SERVER_CALL_ID: Final = re.compile(r"srvtoolu_\w+")

_Block = dict[str, Any]


class RecordedReply(msgspec.Struct, kw_only=True):
    """One recorded response."""

    thread: str
    """Session ID, or name of the sub-agent."""
    number: int
    """Number of the response in its thread, from 1."""
    id: str
    model: str
    words: tuple[str, ...] = ()
    """Prompts since the previous response."""
    results: dict[str, str] = {}
    """Texts of the tool results since the previous response, by tool call ID."""
    blocks: list[_Block] = []
    stop_reason: str = ""
    stop_sequence: str | None = None
    usage: dict[str, Any] = {}
    is_summary: bool = False
    """Whether it is the summary of a compaction, for which no response is recorded."""
    recap: str = ""
    """The summary before the prompt, for the first response after a compaction."""
    served: int = 0

    @property
    def user_text(self) -> str:
        """The prompts as one text."""
        return normalize_text("\n".join(self.words))


def normalize_text(text: str) -> str:
    """Return a text without reminders and with single blanks."""
    return " ".join(_REMINDERS.sub("\n", text).split())


def result_text(block: _Block) -> str:
    """Return the text of a tool result."""
    content = block.get("content")
    if isinstance(content, str):
        return normalize_text(content)
    items = [as_object(item) or {} for item in as_list(content) or ()]
    texts = [str(each.get("text") or f"[{each.get('type')}]") for each in items]
    return normalize_text("\n".join(texts))


def recorded_replies(session: Session) -> Iterator[RecordedReply]:
    """Yield the responses of a session's conversation in order, then the responses of its sub-agents."""
    yield from _thread_replies(session.transcript, session.conversation(), session.id)
    for agent in session.all_agents:
        name = agent.agent_id or agent.call_id or "sub-agent"
        yield from _thread_replies(agent.transcript, agent.nodes, name)
    if session.leaf is None:
        # The file of a sub-agent, replayed on its own.
        yield from _thread_replies(session.transcript, session.transcript.nodes, session.name)


def recorded_searches(session: Session) -> Iterator[tuple[str, tuple[ReplyBlock, ...]]]:
    """Yield the web searches of a session with their results.

    The side query for a search is not recorded, but its results are.
    """
    threads = [(session.transcript, session.transcript.nodes)]
    threads += [(agent.transcript, agent.nodes) for agent in session.all_agents]
    for transcript, nodes in threads:
        for node in nodes:
            if node.type != "user" or not node.results:
                continue
            tool_result = as_object(transcript.record(node).fields.get("toolUseResult")) or {}
            query, results = tool_result.get("query"), as_list(tool_result.get("results"))
            if isinstance(query, str) and results is not None:
                yield query, tuple(_search_reply(query, results))


def _search_reply(query: str, results: list[Any]) -> Iterator[ReplyBlock]:
    for result in results:
        result_block = as_object(result)
        if result_block is None:
            yield text(str(result))
            continue
        pages = [as_object(page) or {} for page in as_list(result_block.get("content")) or ()]
        links = ((str(each.get("title")), str(each.get("url"))) for each in pages)
        name = str(result_block.get("tool_use_id"))
        yield from search(query, *links, tool_id=name if _SERVER_CALL_ID.fullmatch(name) else "")


def _thread_replies(transcript: Transcript, nodes: Iterable[Node], thread: str) -> Iterator[RecordedReply]:
    replies: list[RecordedReply] = []
    open_replies: dict[str, RecordedReply] = {}
    user_input = _UserInput()
    for node in nodes:
        if not node.is_message or not node.has_content:
            continue
        fields = transcript.record(node).fields
        message = as_object(fields.get("message")) or {}
        if node.type == "user" and fields.get("isCompactSummary"):
            replies.append(_summary_reply(message, user_input, thread, len(replies) + 1))
            # Results may be kept after the summary, and are then sent again.
            user_input.words, user_input.recap = [], user_text(message)
        elif node.type == "user":
            user_input.add(message)
        elif node.model != SYNTHETIC and not node.synthetic_error:
            reply = open_replies.get(node.message_id or "")
            if reply is None:
                reply = _new_reply(message, user_input, thread, len(replies) + 1)
                replies.append(reply)
                user_input = _UserInput()
                if node.message_id:
                    open_replies[node.message_id] = reply
            _extend_reply(reply, message)
    yield from replies


class _UserInput:
    """User input since the previous response."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.results: dict[str, str] = {}
        self.recap = ""

    def add(self, message: dict[str, Any]) -> None:
        prompt_text = user_text(message)
        if prompt_text:
            self.words.append(prompt_text)
        for item in as_list(message.get("content")) or ():
            block = as_object(item) or {}
            if block.get("type") == "tool_result":
                self.results[str(block.get("tool_use_id"))] = result_text(block)


def _new_reply(message: dict[str, Any], user_input: _UserInput, thread: str, number: int) -> RecordedReply:
    return RecordedReply(
        thread=thread,
        number=number,
        id=str(message.get("id") or ""),
        model=str(message.get("model") or ""),
        words=tuple(user_input.words),
        results=dict(user_input.results),
        recap=user_input.recap,
    )


def _summary_reply(message: dict[str, Any], user_input: _UserInput, thread: str, number: int) -> RecordedReply:
    reply = _new_reply({}, user_input, thread, number)
    # The client adds the same text around the summary again.
    summary = user_text(message).rpartition("\nSummary:\n")[2].partition(_SUMMARY_SUFFIX)[0].strip()
    reply.blocks = [{"type": "text", "text": f"<summary>\n{summary}\n</summary>"}]
    reply.is_summary = True
    return reply


def _extend_reply(reply: RecordedReply, message: dict[str, Any]) -> None:
    content = message.get("content")
    if isinstance(content, str):
        reply.blocks = [*reply.blocks, {"type": "text", "text": content}]
    else:
        blocks = [as_object(item) for item in as_list(content) or ()]
        reply.blocks = [*reply.blocks, *(block for block in blocks if block)]
    # Only the last record of a response has the final usage; older clients omit the stop reason.
    reply.usage = as_object(message.get("usage")) or reply.usage
    reason, sequence = message.get("stop_reason"), message.get("stop_sequence")
    reply.stop_reason = reason if isinstance(reason, str) else reply.stop_reason
    reply.stop_sequence = sequence if isinstance(sequence, str) else reply.stop_sequence


NO_REPLY: Final = "(no recorded response matches this request)"
"""The reply if no recorded response matches."""
DifferenceKind: TypeAlias = Literal["prompt", "result", "order", "tool", "unknown"]
_SEARCH: Final = "web_search_"
_MAX_TEXT: Final = 400
_MAX_DIFFERENCES: Final = 1_000


class ReplayDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A difference between a request and the recorded session."""

    what: DifferenceKind
    """`prompt` and `result`: text differs from the recording; `order`: not the next response; `tool`: the response
    calls a tool that the request does not offer; `unknown`: nothing matches.
    """
    expected: str
    came: str
    request: int
    thread: str = ""
    take: int = 0
    call: str = ""
    """The ID of the tool call concerned."""


class ReplayResponder:
    """Answers requests with recorded responses."""

    def __init__(
        self, sessions: Iterable[Session], on_difference: Callable[[ReplayDifference], None] | None = None
    ) -> None:
        sessions = tuple(sessions)
        self.replies: list[RecordedReply] = [reply for session in sessions for reply in recorded_replies(session)]
        self.differences: list[ReplayDifference] = []
        """The last differences from the recording."""
        self._on_difference = on_difference
        self._by_call: dict[str, list[RecordedReply]] = {}
        self._by_text: dict[str, list[RecordedReply]] = {}
        self._by_name: dict[str, list[RecordedReply]] = {}
        self._genuine: set[tuple[str, str]] = set()
        self._next: dict[str, int] = {}
        for take in self.replies:
            self._index_reply(take)
        self._searches = dict(search_entry for session in sessions for search_entry in recorded_searches(session))

    def _index_reply(self, reply: RecordedReply) -> None:
        for call in reply.results:
            self._by_call.setdefault(call, []).append(reply)
        for prompt_text in {reply.user_text, "" if reply.is_summary else normalize_text(reply.recap)} - {""}:
            self._by_text.setdefault(prompt_text, []).append(reply)
        for name in _block_ids({"content": reply.blocks}):
            self._by_name.setdefault(name, []).append(reply)
        for block in reply.blocks:
            if block.get("type") == "thinking":
                self._genuine.add((str(block.get("thinking")), str(block.get("signature"))))

    @property
    def unused_replies(self) -> list[RecordedReply]:
        """The recorded responses that were not requested."""
        return [reply for reply in self.replies if not reply.served and not reply.is_summary]

    def accepts_thinking(self, thinking: str, signature: str) -> bool:
        """Return whether the recorded session contains the thinking with this signature."""
        return (thinking, signature) in self._genuine

    def answer(self, request: ResponderRequest) -> Answer:
        """Return the recorded response for a request."""
        search_reply = self._search_reply(request)
        if search_reply is not None:
            return search_reply
        reply = self._find_reply(request)
        if reply is None:
            self._report(what="unknown", expected="", came=_request_text(request), request=request.number)
            return Reply(content=(text(NO_REPLY),))
        self._compare(reply, request)
        reply.served += 1
        self._next[reply.thread] = reply.number + 1
        return Reply(
            content=tuple(ReplyBlock(block) for block in reply.blocks),
            stop_reason=reply.stop_reason,
            stop_sequence=reply.stop_sequence,
            usage=reply.usage,
            model=reply.model,
            id=reply.id,
        )

    def _search_reply(self, request: ResponderRequest) -> Reply | None:
        """Return the results of a recorded search, if the request is a search."""
        tools = [as_object(tool) or {} for tool in as_list(request.body.get("tools")) or ()]
        if len(tools) != 1 or not str(tools[0].get("type")).startswith(_SEARCH):
            return None
        matches = [query for query in self._searches if query and query in request.prompt]
        return Reply(content=self._searches[max(matches, key=len)]) if matches else None

    # Matching

    def _find_reply(self, request: ResponderRequest) -> RecordedReply | None:
        results = request.results
        calls = [str(result.get("tool_use_id")) for result in results]
        by_call = [reply for call in calls for reply in self._by_call.get(call, ())]
        if by_call:
            return self._best_match(by_call, request)
        prompt = normalize_text(request.prompt) if request.prompt_is_last else ""
        by_text = self._by_text.get(prompt, [])
        if by_text and prompt:
            return self._best_match(by_text, request)
        return self._similar_reply(prompt, request) if prompt else None

    def _similar_reply(self, prompt: str, request: ResponderRequest) -> RecordedReply | None:
        """Return the response to a similar prompt, or the one after the last response in the request."""
        similar = [take for take in self.replies if take.words and normalize_text(take.words[-1]) in prompt]
        if similar:
            return self._best_match(similar, request)
        answers = [message for message in request.messages if message.get("role") == "assistant"]
        names = _block_ids(answers[-1]) if answers else []
        last_replies = [take for name in names for take in self._by_name.get(name, ())]
        following = self._next_reply(self._best_match(last_replies, request, offset=1)) if last_replies else None
        return following or self._due_summary()

    def _due_summary(self) -> RecordedReply | None:
        """Return the summary that is next in its thread; the text of its request depends on the client."""
        due = (reply for reply in self.replies if reply.is_summary and not reply.served)
        return next((take for take in due if take.number == self._next.get(take.thread)), None)

    def _next_reply(self, reply: RecordedReply) -> RecordedReply | None:
        following = (candidate for candidate in self.replies if candidate.thread == reply.thread)
        return next((each for each in following if each.number == reply.number + 1), None)

    def _best_match(self, replies: list[RecordedReply], request: ResponderRequest, offset: int = 0) -> RecordedReply:
        """Return the response at the same position of the conversation, else the first unused one."""
        before = sum(message.get("role") == "assistant" for message in request.messages)
        position = before + 1 - offset

        def rank(reply: RecordedReply) -> tuple[bool, bool, bool, int]:
            is_used_summary = reply.is_summary and bool(reply.served)
            return is_used_summary, reply.number != position, bool(reply.served), reply.number

        return min(replies, key=rank)

    # Comparison

    def _compare(self, reply: RecordedReply, request: ResponderRequest) -> None:
        context: dict[str, Any] = {"request": request.number, "thread": reply.thread, "take": reply.number}
        expected = self._next.get(reply.thread, 1)
        if reply.number > expected:
            self._report(what="order", expected=f"answer {expected}", came=f"answer {reply.number}", **context)
        self._compare_results(reply, request, context)
        prompt = normalize_text(request.prompt) if request.prompt_is_last else ""
        last = normalize_text(reply.words[-1]) if reply.words else ""
        # A client may add text around a prompt, and omit notes about its own commands.
        differs = last not in prompt if last else bool(prompt) and not reply.recap
        if differs and not reply.is_summary:
            self._report(what="prompt", expected=last, came=prompt, **context)
        self._compare_tools(reply, request, context)

    def _compare_results(self, reply: RecordedReply, request: ResponderRequest, context: dict[str, Any]) -> None:
        actual_results = {str(block.get("tool_use_id")): result_text(block) for block in request.results}
        for call in {**reply.results, **actual_results}:
            expected, actual = reply.results.get(call, ""), actual_results.get(call, "")
            if expected != actual:
                self._report(what="result", expected=expected, came=actual, call=call, **context)

    def _compare_tools(self, reply: RecordedReply, request: ResponderRequest, context: dict[str, Any]) -> None:
        tools = [as_object(tool_value) or {} for tool_value in as_list(request.body.get("tools")) or ()]
        offered = {str(tool.get("name")) for tool in tools}
        for block in reply.blocks:
            name = str(block.get("name"))
            if block.get("type") == "tool_use" and name not in offered:
                call = str(block.get("id"))
                offered_names = ", ".join(sorted(offered)) or "no tools"
                self._report(what="tool", expected=name, came=offered_names, call=call, **context)

    def _report(self, *, expected: str, came: str, **about: Any) -> None:
        difference = ReplayDifference(expected=expected[:_MAX_TEXT], came=came[:_MAX_TEXT], **about)
        self.differences = [*self.differences, difference][-_MAX_DIFFERENCES:]
        if self._on_difference is not None:
            self._on_difference(difference)


def _block_ids(message: dict[str, Any]) -> list[str]:
    """Return the values that identify a response: tool call IDs and texts."""
    blocks = [as_object(content_block) or {} for content_block in as_list(message.get("content")) or ()]
    ids = [each.get("id") or each.get("text") for each in blocks]
    return [name for name in ids if isinstance(name, str)]


def _request_text(request: ResponderRequest) -> str:
    results = [result_text(block) for block in request.results]
    return normalize_text("\n".join((request.prompt, *results)) if request.prompt_is_last else "\n".join(results))
