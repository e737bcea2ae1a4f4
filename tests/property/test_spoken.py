"""What is proven bit by bit is what would be proven all at once, and has the same bytes."""

from itertools import chain, repeat
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from steno.agent.context.token_usage import estimate_messages
from steno.agent.conversation import MessageBuffer
from steno.llm.messages_api import Request, encode_request
from steno.session.resume.api_rules import NO_CONTENT, fix_block
from steno.session.resume.clients import STENO
from steno.session.resume.entries import Entry
from steno.session.resume.replay import MISSING_BEGINNING, join_user_entries, trim_message

NAMES = st.sampled_from(["toolu_1", "toolu_2", "toolu_1-again", "", 7])
WORDS = st.sampled_from(["", " ", "word", "größe", "half \ud800 a pair", "word " * 100])
INNER = st.one_of(
    WORDS,
    st.none(),
    st.lists(
        st.one_of(
            st.fixed_dictionaries({"type": st.just("text"), "text": WORDS}),
            st.just({"type": "image", "source": {"type": "base64", "data": "?"}}),
        ),
        max_size=2,
    ),
)
BLOCKS = st.one_of(
    st.fixed_dictionaries({"type": st.just("text"), "text": WORDS}),
    st.fixed_dictionaries(
        {"type": st.just("tool_use"), "id": NAMES, "name": WORDS, "input": st.sampled_from([{}, {"a": 1.5}, None, "{"])}
    ),
    st.fixed_dictionaries({"type": st.just("tool_result"), "tool_use_id": NAMES, "content": INNER}),
    st.just({"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}),
    st.fixed_dictionaries({"type": st.just("thinking"), "thinking": WORDS, "signature": WORDS}),
    st.fixed_dictionaries({"type": st.sampled_from(["odd", "image", "document"])}),
)
SAID = st.tuples(st.sampled_from(["user", "assistant"]), st.lists(BLOCKS, max_size=3))
CALL = {"type": "tool_use", "id": "toolu_1", "name": "Look", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "word " * 100}
REMINDED = ("user", [{"type": "text", "text": "Mind."}], "reminder")
EXCHANGE = [("assistant", [CALL]), ("user", [RESULT])]
ACTS = st.lists(
    st.one_of(SAID.map(lambda one: [one]), st.sampled_from([["send"], ["trim"], ["fail"], EXCHANGE, [REMINDED]])),
    max_size=14,
)


def proven(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Prove a whole conversation at once, told in the plainest way."""
    found: list[dict[str, Any]] = []
    used: list[str] = []
    renamed: dict[str, list[str]] = {}
    for message in messages:
        role, blocks = message["role"], [dict(block) for block in message["content"]]
        if not found and role != "user":
            found.append({"role": "user", "content": [{"type": "text", "text": MISSING_BEGINNING}]})
        if role == "assistant":
            renamed = new_names(blocks, used)
        for kind, key in (("tool_use", "id"), ("tool_result", "tool_use_id")):
            for old, names in renamed.items():
                same_id = [each for each in blocks if each["type"] == kind and str(each[key]) == old]
                for block, name in zip(same_id, chain(names, repeat(names[-1])), strict=False):
                    block[key] = name
        good = [fixed for block in blocks if (fixed := fix_block(block, role)) is not None]
        if role == "assistant" and message is not messages[-1]:
            good = [block for block in good if block["type"] != "server_tool_use"]
        if role == "user":
            results = [block for block in good if block["type"] == "tool_result"]
            good = results + [block for block in good if block["type"] != "tool_result"]
        found.append({"role": role, "content": good or [{"type": "text", "text": NO_CONTENT}]})
    return found


def new_names(blocks: list[dict[str, Any]], used: list[str]) -> dict[str, list[str]]:
    """Return the ids that are sent for each id of a message, in the order of its calls."""
    names: dict[str, list[str]] = {}
    for call in [block for block in blocks if block["type"] == "tool_use"]:
        name = str(call["id"])
        while name in used:
            name += "-again"
        used.append(name)
        names.setdefault(str(call["id"]), []).append(name)
    return {old: new for old, new in names.items() if new != [old]}


class Whole:
    """The same conversation, put together from the beginning every time."""

    def __init__(self, begun: list[dict[str, Any]]) -> None:
        self.settled = [Entry(each["role"], list(each["content"])) for each in begun]
        self.since: list[Entry] = []
        if self.settled and self.settled[-1].role == "user":
            self.since.append(self.settled.pop())
        self.trims: list[tuple[int, frozenset[Any]]] = []

    def say(self, role: str, blocks: list[dict[str, Any]], kind: Any = "message") -> None:
        if not blocks:
            return
        if role == "user":
            self.since.append(Entry(role, list(blocks), kind=kind))
            return
        self.settled += [*join_user_entries(self.since, STENO), Entry(role, list(blocks))]
        self.since = []

    def fail(self, words: str) -> None:
        self.since.append(Entry("assistant", [{"type": "text", "text": words}], error=True))

    def messages(self) -> list[dict[str, Any]]:
        entries = [*self.settled, *join_user_entries(self.since, STENO)]
        found = proven([{"role": each.role, "content": each.blocks} for each in entries if each.blocks])
        for upto, calls in self.trims:
            found[:upto] = [trim_message(message, calls) for message in found[:upto]]
        return found


def results_in(messages: Any) -> frozenset[Any]:
    blocks = (block for message in messages for block in message["content"])
    return frozenset(b.get("tool_use_id") for b in blocks if b.get("type") == "tool_result")


@settings(max_examples=300)
@given(ACTS, st.lists(SAID, max_size=3))
def test_bit_by_bit_or_at_once_the_request_is_the_same(
    acts: list[list[Any]], before: list[tuple[str, list[dict[str, Any]]]]
) -> None:
    begun = proven([{"role": role, "content": blocks} for role, blocks in before])
    spoken, whole = MessageBuffer(begun), Whole(begun)
    for act in chain.from_iterable(acts):
        if act == "trim":
            calls = results_in(spoken.settled_messages)
            whole.trims.append((len(spoken.settled_messages), calls))
            spoken.trim(calls)
        elif act == "send":
            same(spoken, whole.messages())
        elif act == "fail":
            spoken.append_error("It broke.")
            whole.fail("It broke.")
        else:
            whole.say(*act)
            spoken.append(*act)
    same(spoken, whole.messages())


def same(spoken: MessageBuffer, wanted: list[dict[str, Any]]) -> None:
    assert spoken.messages() == wanted
    assert spoken.tokens == estimate_messages(wanted)
    if wanted and wanted[-1]["content"][-1]["type"] != "thinking":
        *blocks, last = wanted[-1]["content"]
        marked = {**last, "cache_control": {"type": "ephemeral"}}
        wanted = [*wanted[:-1], {**wanted[-1], "content": [*blocks, marked]}]
    assert encode_request(asking(spoken.wire())) == encode_request(asking(wanted))


def asking(messages: Any) -> Request:
    return Request(model="m", max_tokens=1, messages=messages, system=[{"text": "\udfff"}])
