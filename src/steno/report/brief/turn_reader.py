"""Texts and tool calls of turns, in the order of the conversation."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final, cast

import msgspec

from steno.format.blocks import ServerToolUse, Text, ToolUse, read_blocks
from steno.format.loose import loose
from steno.report.brief.tool_inputs import KEPT, shortened_input
from steno.report.brief.turn_content import AssistantText, ToolCall
from steno.session.story.steps import Step, one_line
from steno.session.story.turns import Turn
from steno.session.story.usage import SYNTHETIC
from steno.session.transcript import Transcript

__all__ = ["TurnReader", "TurnRows"]

_UNCUT: Final = 1 << 62
_BEFORE: Final = -1


class TurnRows(msgspec.Struct, frozen=True):
    """The texts and calls of a turn."""

    texts: tuple[AssistantText, ...]
    calls: tuple[ToolCall, ...]
    orders: dict[str, int]
    """The position at which each record stands among them, by its id; -1 before the prompt."""


class TurnReader:
    """Reads the records of turns again for what their steps leave out."""

    def __init__(self, *, full: bool) -> None:
        self.longest = _UNCUT if full else KEPT
        """Characters of a parameter that are kept."""

    def read(self, transcript: Transcript, turn: Turn, first: int = 0) -> TurnRows:
        """Return the texts and calls of a turn; `first` is the position of the first of them."""
        texts: list[AssistantText] = []
        calls: list[ToolCall] = []
        orders: dict[str, int] = {}
        steps = _steps_by_call(turn.steps)
        asked = turn.prompt is None
        repeated = ""
        for node in turn.nodes:
            asked = asked or (turn.prompt is not None and node is turn.prompt.node)
            if node.uuid:
                orders[node.uuid] = first + len(texts) + len(calls) if asked else _BEFORE
            if node.type != "assistant":
                continue
            if node.message_id and node.message_id in (repeated, f"msg_{node.parent}"):
                # Behind a compaction steno says the last turn again, under ids made like this.
                repeated = node.message_id
                continue
            record = transcript.record(node)
            synthetic = node.model == SYNTHETIC or bool(record.envelope.is_api_error_message)
            time = _seconds(record.time)
            for block in record.blocks:
                order = first + len(texts) + len(calls)
                if isinstance(block, ToolUse | ServerToolUse):
                    step = steps.get(block.id or f"@{node.index}")
                    calls.append(self._call(order, block, step, time, node.uuid or ""))
                elif isinstance(block, Text) and block.text.strip():
                    texts.append(
                        AssistantText(
                            order=order,
                            text=block.text,
                            size=len(block.text),
                            synthetic=synthetic,
                            time=time,
                            uuid=node.uuid or "",
                        )
                    )
        return TurnRows(tuple(_with_final(texts, turn.answer)), tuple(calls), orders)

    def queued(self, transcript: Transcript, turn: Turn) -> tuple[str, ...]:
        """Return what was said while the turn ran, whole: its steps have only the first lines."""
        steps = (step for step in turn.steps if step.kind == "queued")
        return tuple(_queued_text(transcript, step) for step in steps)

    def read_all(
        self, transcript: Transcript, turns: Iterable[Turn]
    ) -> tuple[tuple[AssistantText, ...], tuple[ToolCall, ...]]:
        """Return the texts and calls of several turns, as one row."""
        texts: list[AssistantText] = []
        calls: list[ToolCall] = []
        for turn in turns:
            rows = self.read(transcript, turn, len(texts) + len(calls))
            texts += rows.texts
            calls += rows.calls
        return tuple(texts), tuple(calls)

    def _call(
        self,
        order: int,
        block: ToolUse | ServerToolUse,
        step: Step | None,
        time: float | None,
        uuid: str,
    ) -> ToolCall:
        given, cut = shortened_input(block.input, self.longest)
        return ToolCall(
            order=order,
            id=block.id,
            tool=block.name,
            input=given,
            cut=cut,
            state=step.state if step is not None else "open",
            outcome=step.outcome if step is not None else "",
            seconds=step.duration if step is not None else None,
            time=time,
            uuid=uuid,
        )


def _queued_text(transcript: Transcript, step: Step) -> str:
    if step.call is None:
        return step.subject
    record = transcript.record(step.call)
    value: Any = record.envelope.content or record.envelope.attachment
    value = loose(value) if value else None
    if isinstance(value, dict):
        value = cast("dict[str, Any]", value).get("prompt")
    blocks = record.blocks if record.role else read_blocks(value)
    texts = [block.text for block in blocks if isinstance(block, Text)]
    # A record may hold several texts: the step is about one of them.
    own = next((text for text in texts if one_line(text) == step.subject), "")
    return (own or "\n\n".join(texts) or step.subject).strip()


def _steps_by_call(steps: Iterable[Step]) -> dict[str, Step]:
    found: dict[str, Step] = {}
    for step in steps:
        if step.call is not None and step.call.type == "assistant":
            found.setdefault(step.call_id or f"@{step.call.index}", step)
    return found


def _with_final(texts: list[AssistantText], answer: str) -> Iterator[AssistantText]:
    """Yield texts with those marked that the answer of the turn consists of."""
    spoken = [place for place, each in enumerate(texts) if not each.synthetic]
    final: set[int] = set()
    rest = answer
    for place in reversed(spoken):
        text = texts[place].text
        if not rest or not rest.endswith(text):
            break
        final.add(place)
        rest = rest[: -len(text)].removesuffix("\n\n")
    for place, each in enumerate(texts):
        yield msgspec.structs.replace(each, final=place in final)


def _seconds(time: datetime | None) -> float | None:
    return None if time is None else time.timestamp()
