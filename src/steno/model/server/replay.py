"""The replay mind: recorded sessions answer again, and what differs from the record is told."""

from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, TypeAlias

import msgspec

from steno.format.values import as_list, as_object
from steno.model.server.minds import Answer, Asked, Reply, Said, text
from steno.model.server.recorded import Take, plain, result_text, searches_of, takes_of
from steno.session.session import Session

__all__ = ["NOTHING", "Drift", "Replay", "What"]

NOTHING: Final = "(nothing recorded answers this)"
"""What is answered where no recorded answer fits."""
What: TypeAlias = Literal["prompt", "result", "order", "tool", "unknown"]
_SEARCH: Final = "web_search_"
_SHOWN: Final = 400
_KEPT: Final = 1_000


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """Something that came otherwise than it was recorded."""

    what: What
    """`prompt` and `result`: other words than recorded; `order`: not the answer that was next;
    `tool`: an answer calls a tool that the request does not offer; `unknown`: nothing fits."""
    expected: str
    came: str
    request: int
    thread: str = ""
    take: int = 0
    call: str = ""
    """The tool call that it is about."""


class Replay:
    """A mind that says what was said before."""

    def __init__(
        self, sessions: Iterable[Session], on_drift: Callable[[Drift], None] | None = None
    ) -> None:
        sessions = tuple(sessions)
        self.takes: list[Take] = [take for session in sessions for take in takes_of(session)]
        self.drifts: list[Drift] = []
        """What came otherwise than it was recorded, the last of it."""
        self._on_drift = on_drift
        self._by_call: dict[str, list[Take]] = {}
        self._by_words: dict[str, list[Take]] = {}
        self._by_name: dict[str, list[Take]] = {}
        self._genuine: set[tuple[str, str]] = set()
        self._next: dict[str, int] = {}
        for take in self.takes:
            self._learn(take)
        self._searches = dict(found for session in sessions for found in searches_of(session))

    def _learn(self, take: Take) -> None:
        for call in take.results:
            self._by_call.setdefault(call, []).append(take)
        for words in {take.said, "" if take.is_summary else plain(take.recap)} - {""}:
            self._by_words.setdefault(words, []).append(take)
        for name in _names({"content": take.blocks}):
            self._by_name.setdefault(name, []).append(take)
        for block in take.blocks:
            if block.get("type") == "thinking":
                self._genuine.add((str(block.get("thinking")), str(block.get("signature"))))

    @property
    def left(self) -> list[Take]:
        """The recorded answers that nobody has asked for."""
        return [take for take in self.takes if not take.served and not take.is_summary]

    def vouches(self, thinking: str, signature: str) -> bool:
        """Vouch for the thinking that was recorded."""
        return (thinking, signature) in self._genuine

    def answer(self, asked: Asked) -> Answer:
        """Return the recorded answer to what the request asks."""
        searched = self._searched(asked)
        if searched is not None:
            return searched
        take = self._find(asked)
        if take is None:
            self._drift(what="unknown", expected="", came=_asks(asked), request=asked.number)
            return Reply(content=(text(NOTHING),))
        self._compare(take, asked)
        take.served += 1
        self._next[take.thread] = take.number + 1
        return Reply(
            content=tuple(Said(block) for block in take.blocks),
            stop_reason=take.stop_reason,
            stop_sequence=take.stop_sequence,
            usage=take.usage,
            model=take.model,
            id=take.id,
        )

    def _searched(self, asked: Asked) -> Reply | None:
        """Return what a search found, where the request is one that was made then."""
        tools = [as_object(each) or {} for each in as_list(asked.body.get("tools")) or ()]
        if len(tools) != 1 or not str(tools[0].get("type")).startswith(_SEARCH):
            return None
        fits = [query for query in self._searches if query and query in asked.prompt]
        return Reply(content=self._searches[max(fits, key=len)]) if fits else None

    # Which answer it is

    def _find(self, asked: Asked) -> Take | None:
        results = asked.results
        calls = [str(block.get("tool_use_id")) for block in results]
        by_call = [take for call in calls for take in self._by_call.get(call, ())]
        if by_call:
            return self._best(by_call, asked)
        said = plain(asked.prompt) if asked.prompt_is_last else ""
        by_words = self._by_words.get(said, [])
        if by_words and said:
            return self._best(by_words, asked)
        return self._likely(said, asked) if said else None

    def _likely(self, said: str, asked: Asked) -> Take | None:
        """Return an answer to nearly the same words, or the one behind the last that was given."""
        near = [take for take in self.takes if take.words and plain(take.words[-1]) in said]
        if near:
            return self._best(near, asked)
        answers = [each for each in asked.messages if each.get("role") == "assistant"]
        names = _names(answers[-1]) if answers else []
        last = [take for name in names for take in self._by_name.get(name, ())]
        behind = self._behind(self._best(last, asked, back=1)) if last else None
        return behind or self._due_summary()

    def _due_summary(self) -> Take | None:
        """Return a summary that is next in its thread: a client asks for it in its own words."""
        due = (take for take in self.takes if take.is_summary and not take.served)
        return next((take for take in due if take.number == self._next.get(take.thread)), None)

    def _behind(self, take: Take) -> Take | None:
        following = (each for each in self.takes if each.thread == take.thread)
        return next((each for each in following if each.number == take.number + 1), None)

    def _best(self, takes: list[Take], asked: Asked, back: int = 0) -> Take:
        """Return the one at the same place of the conversation, else the first not yet given."""
        before = sum(message.get("role") == "assistant" for message in asked.messages)
        place = before + 1 - back

        def rank(take: Take) -> tuple[bool, bool, bool, int]:
            told = take.is_summary and bool(take.served)
            return told, take.number != place, bool(take.served), take.number

        return min(takes, key=rank)

    # What is different

    def _compare(self, take: Take, asked: Asked) -> None:
        about: dict[str, Any] = {
            "request": asked.number,
            "thread": take.thread,
            "take": take.number,
        }
        expected = self._next.get(take.thread, 1)
        if take.number > expected:
            self._drift(
                what="order", expected=f"answer {expected}", came=f"answer {take.number}", **about
            )
        self._compare_results(take, asked, about)
        came = plain(asked.prompt) if asked.prompt_is_last else ""
        last = plain(take.words[-1]) if take.words else ""
        # A client may say more around the words, and notes of its own commands it may leave out.
        other = last not in came if last else bool(came) and not take.recap
        if other and not take.is_summary:
            self._drift(what="prompt", expected=last, came=came, **about)
        self._compare_tools(take, asked, about)

    def _compare_results(self, take: Take, asked: Asked, about: dict[str, Any]) -> None:
        came = {str(block.get("tool_use_id")): result_text(block) for block in asked.results}
        for call in {**take.results, **came}:
            expected, given = take.results.get(call, ""), came.get(call, "")
            if expected != given:
                self._drift(what="result", expected=expected, came=given, call=call, **about)

    def _compare_tools(self, take: Take, asked: Asked, about: dict[str, Any]) -> None:
        tools = [as_object(each) or {} for each in as_list(asked.body.get("tools")) or ()]
        offered = {str(tool.get("name")) for tool in tools}
        for block in take.blocks:
            name = str(block.get("name"))
            if block.get("type") == "tool_use" and name not in offered:
                call = str(block.get("id"))
                listed = ", ".join(sorted(offered)) or "no tools"
                self._drift(what="tool", expected=name, came=listed, call=call, **about)

    def _drift(self, *, expected: str, came: str, **about: Any) -> None:
        drift = Drift(expected=expected[:_SHOWN], came=came[:_SHOWN], **about)
        self.drifts = [*self.drifts, drift][-_KEPT:]
        if self._on_drift is not None:
            self._on_drift(drift)


def _names(message: dict[str, Any]) -> list[str]:
    """Return what an answer is known again by: the ids of its calls, and its texts."""
    blocks = [as_object(each) or {} for each in as_list(message.get("content")) or ()]
    named = [each.get("id") or each.get("text") for each in blocks]
    return [name for name in named if isinstance(name, str)]


def _asks(asked: Asked) -> str:
    results = [result_text(block) for block in asked.results]
    return plain(
        "\n".join((asked.prompt, *results)) if asked.prompt_is_last else "\n".join(results)
    )
