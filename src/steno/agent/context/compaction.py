"""Keeps the conversation within the context window: trims old output, then compacts.

Output is trimmed in large batches and stays trimmed, so that between two trims the request prefix
is the same for the prompt cache. A record names the trimmed calls, so that a resumed session
sends the same.

Compaction keeps the last turn verbatim. The summary is made from plain text, in pieces if needed,
so that no conversation is too long to be compacted.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, Protocol, runtime_checkable

from steno.agent.context.token_usage import (
    CHARACTERS_PER_TOKEN,
    context_window,
    estimate_blocks,
    estimate_messages,
    message_text,
    transcript_lines,
)
from steno.agent.conversation import RetainedTail, content_blocks
from steno.agent.events import Compacted, Notice, Trimmed
from steno.agent.hooks.hook_events import HookEvent
from steno.agent.loop import Agent
from steno.agent.side_query import ask_model
from steno.format.tool_catalogue import tool_facts
from steno.llm.messages_api import ApiError, Message, Request
from steno.session.resume.api_rules import is_prompt
from steno.session.resume.replay import output_size

_TRIM_FROM_SHARE: Final = 0.7
"""The part of what fits before a compaction from which on output is left out."""
_RETAINED_SHARE: Final = 0.2
"""The part of the window at the end of which all output stays."""
_MIN_SAVED_SHARE: Final = 0.1
"""The part of the window that a trimming must save: each one costs the cache."""
_MIN_RESULT_CHARACTERS: Final = 2_000
"""How many characters output has that is worth leaving out."""


class Trimmer:
    """Leaves out old output when the window fills up."""

    def __init__(self) -> None:
        self._skip_below = 0.0
        """With less in the window than this, there is no use in looking."""

    def __call__(self, agent: "Agent", context: int, *, window: int, limit: float) -> bool:
        """Trim if it is time and worth it; whether it was done.

        `context` is what the next request takes of the window, `limit` what fits.
        """
        if context < limit * _TRIM_FROM_SHARE:
            self._skip_below = 0.0
            return False
        if context < self._skip_below:
            return False
        call_ids, saved = _old_results(agent.conversation.settled_messages, round(window * _RETAINED_SHARE))
        trims = saved >= window * _MIN_SAVED_SHARE
        if trims:
            agent.conversation.trim_results(call_ids, tokens_before=context, tokens_saved=saved)
            agent.meter.context_size = max(context - saved, 0)
            agent.conversation.uncounted_tokens = 0
            agent.emit(Trimmed(context, next_request_tokens(agent), tuple(call_ids)))
        self._skip_below = next_request_tokens(agent) + window * _MIN_SAVED_SHARE
        return trims


def next_request_tokens(agent: "Agent") -> int:
    """Return how much of the window the next request takes: as counted last, and what came since."""
    return (agent.meter.context_size or fixed_tokens(agent)) + agent.conversation.uncounted_tokens


def fixed_tokens(agent: "Agent") -> int:
    """Return how much everything takes that is no message."""
    return estimate_blocks([*agent.request_config.system, *agent.executor.tools.to_api()])


def _old_results(messages: Sequence[Message], retained_tokens: int) -> tuple[list[str], int]:
    """Return the calls whose output is large and old, oldest first, and the tokens it takes."""
    tools = {
        str(block.get("id")): str(block.get("name"))
        for message in messages
        for block in message["content"]
        if block.get("type") == "tool_use"
    }
    end = len(messages)
    while end and retained_tokens > 0:
        end -= 1
        retained_tokens -= estimate_messages(messages[end : end + 1])
    call_ids: list[str] = []
    saved = 0
    for message in messages[:end]:
        for block in message["content"]:
            call_id = str(block.get("tool_use_id"))
            repeatable = tool_facts(tools.get(call_id, "")).repeatable
            if block.get("type") != "tool_result" or not repeatable:
                continue
            size = output_size(block)
            if size >= _MIN_RESULT_CHARACTERS:
                call_ids.append(call_id)
                saved += size // CHARACTERS_PER_TOKEN
    return call_ids, saved


_RESERVED_SHARE: Final = 0.08
"""The part of the window that is kept free for a summary to be made in."""
_TAIL_SHARE: Final = 0.2
"""The part of the window that the last turn may fill and still stay as it is."""
_PIECE_SHARE: Final = 0.5
"""The part of the window that one piece of a long conversation may fill."""
_COUNT_FROM_SHARE: Final = 0.5
_MIN_PIECE: Final = 2_000
"""A piece of so few letters is not made smaller."""
_MAX_FILES: Final = 5
_MAX_FILE_CHARACTERS: Final = 20_000
_FILES_SHARE: Final = 0.1
"""The part of the window that files which were worked on may fill again."""
_SUMMARIZER: Final = (
    "You write down what happened in a session between a user and a coding agent, for the agent to "
    "go on from without having seen it. Be exact about names, paths, commands, errors, decisions, "
    "what the user asked for and insisted on, what is done and what is still to do. No preamble."
)
_SUMMARY_PROMPT: Final = "Summarize this session.{wishes}\n\n<session>\n{text}\n</session>"
_NEXT_SUMMARY_PROMPT: Final = (
    "This is the summary of a session so far:\n\n<summary>\n{summary}\n</summary>\n\nThe session "
    "goes on as follows. Write one summary of all of it.{wishes}\n\n<session>\n{text}\n</session>"
)
_SUMMARY_HEADER: Final = "This session goes on from an earlier conversation that became too long. What happened in it:"


class ContextCompactor:
    """Makes room when the window fills up, or when asked to."""

    def __init__(self, *, window: int | None = None, automatic: bool = True) -> None:
        self._window = window
        self._automatic = automatic
        self._trimmer = Trimmer()

    async def __call__(self, agent: Agent) -> None:
        """Leave out old output, and compact if the next request might still not fit."""
        if not self._automatic:
            return
        window = self.window(agent)
        # A model that may write more than half a window would leave no room for anything.
        limit = max(window * (1 - _RESERVED_SHARE) - agent.request_config.max_tokens, window // 2)
        if agent.meter.context_size:
            used = next_request_tokens(agent)
        else:
            used = agent.meter.context_size = await _count_context(agent, limit)
            agent.conversation.uncounted_tokens = 0
        if self._trimmer(agent, used, window=window, limit=limit):
            used = next_request_tokens(agent)
        if used >= limit:
            await self.compact(agent, "auto")

    async def make_room(self, agent: Agent) -> bool:
        """Compact because the API has refused what was guessed to fit; whether that was done."""
        return self._automatic and await self.compact(agent, "auto")

    def window(self, agent: Agent) -> int:
        """Return how many tokens the model takes in."""
        return self._window or context_window(agent.request_config.model)

    async def compact(
        self,
        agent: Agent,
        trigger: Literal["auto", "manual"],
        instructions: str = "",
        after_summary: Callable[[], None] = lambda: None,
    ) -> bool:
        """Put a summary in the place of everything but the last turn; whether that was done.

        `after_summary` is done right behind it, before anything else is said.

        Raises:
            ApiError: the model could not be asked for a summary.
        """
        messages = agent.conversation.messages()
        if not messages:
            return False
        hooks = agent.executor.hooks
        fields: dict[str, Any] = {"trigger": trigger, "custom_instructions": instructions}
        outcome = await hooks.dispatch(HookEvent("PreCompact", fields))
        agent.emit_notices(outcome)
        if outcome.blocked or outcome.ends_turn:
            return False
        instructions = " ".join(text for text in (instructions, *outcome.context) if text)
        tokens_before, started_at = next_request_tokens(agent), time.monotonic()
        head, tail = _split_messages(messages, round(self.window(agent) * _TAIL_SHARE))
        summary = await self._summarize(agent, head or messages, instructions)
        if not summary:
            agent.emit(Notice("The model gave no summary: nothing was compacted.", "warning"))
            return False
        last_prompt = "" if tail and is_prompt(tail[0]) else self._last_prompt_text(agent)
        summary_message = "\n\n".join(part for part in (_SUMMARY_HEADER, summary, last_prompt) if part)
        agent.conversation.replace_by_summary(
            summary_message,
            RetainedTail(tail, agent.request_config.model),
            trigger=trigger,
            tokens_before=tokens_before,
            tokens_after=estimate_blocks(content_blocks(summary_message)) + estimate_messages(tail),
            seconds=time.monotonic() - started_at,
        )
        after_summary()
        file_texts = _recent_files(agent, self._character_budget(agent, _FILES_SHARE))
        if file_texts:
            agent.conversation.add_prompt(file_texts, meta=True)
        agent.meter.context_size = fixed_tokens(agent) + agent.conversation.tokens
        agent.conversation.uncounted_tokens = 0
        agent.emit(Compacted(trigger, tokens_before, agent.meter.context_size, summary))
        fields = {"trigger": trigger, "compact_summary": summary}
        agent.emit_notices(await hooks.dispatch(HookEvent("PostCompact", fields)))
        fields = {"source": "compact", "model": agent.request_config.model}
        outcome = await hooks.dispatch(HookEvent("SessionStart", fields))
        agent.emit_notices(outcome)
        agent.conversation.add_attachments(outcome.records)
        return True

    async def _summarize(self, agent: Agent, messages: list[Message], instructions: str) -> str:
        instruction_text = f" Above all: {instructions}" if instructions else ""
        piece_size = self._character_budget(agent, _PIECE_SHARE)
        remaining = "\n\n".join(transcript_lines(messages))
        summary = ""
        while remaining:
            template = _NEXT_SUMMARY_PROMPT if summary else _SUMMARY_PROMPT
            prompt = template.format(wishes=instruction_text, summary=summary, text=remaining[:piece_size])
            try:
                response = await ask_model(agent, _SUMMARIZER, prompt)
            except ApiError as error:
                # Some texts have far more tokens than letters let guess.
                if not error.is_context_overflow or piece_size <= _MIN_PIECE:
                    raise
                piece_size = min(piece_size, len(remaining)) // 2
                continue
            summary, remaining = message_text(response.blocks).strip(), remaining[piece_size:]
            # What was said before must not give way to nothing.
            if not summary or response.stop_reason == "refusal":
                return ""
        return summary

    def _last_prompt_text(self, agent: Agent) -> str:
        prompt_text = agent.conversation.last_prompt[: self._character_budget(agent, _PIECE_SHARE)]
        return f"The user's last words were:\n\n{prompt_text}" if prompt_text else ""

    def _character_budget(self, agent: Agent, share: float) -> int:
        return round(self.window(agent) * share) * CHARACTERS_PER_TOKEN


@runtime_checkable
class _TokenCounter(Protocol):
    """A model that can say how many tokens a request has."""

    async def count_tokens(self, request: Request) -> int: ...


async def _count_context(agent: Agent, limit: float) -> int:
    """Return what the next request takes, of a conversation that came without figures.

    A guess will do while it is far from the limit; near it the model is asked, since what does
    not fit is refused.
    """
    estimated = next_request_tokens(agent)
    if estimated < limit * _COUNT_FROM_SHARE or not isinstance(agent.model, _TokenCounter):
        return estimated
    try:
        return await agent.model.count_tokens(agent.build_request())
    except ApiError:
        return estimated


def _split_messages(messages: list[Message], budget: int) -> tuple[list[Message], list[Message]]:
    """Return what is summed up and what stays: the last turn, or as much of its end as has room."""
    start = max((index for index, message in enumerate(messages) if is_prompt(message)), default=len(messages))
    if estimate_messages(messages[start:]) <= budget:
        # Where there is only one turn all of it is summed up: to say it again would be no gain.
        return (messages[:start], messages[start:]) if start else (messages, [])
    # A tail that begins with an answer holds the calls of all results in it.
    for place in range(start, len(messages)):
        tail = messages[place:]
        if messages[place]["role"] == "assistant" and estimate_messages(tail) <= budget:
            return messages[:place], tail
    return messages, []


def _recent_files(agent: Agent, budget: int) -> str:
    """Return what the files that were last worked on hold now, as many as have room."""
    sections: list[str] = []
    for path in reversed(list(agent.executor.context.file_stamps)[-_MAX_FILES:]):
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read(_MAX_FILE_CHARACTERS + 1)
        except (OSError, UnicodeDecodeError):
            continue
        if len(text) <= min(_MAX_FILE_CHARACTERS, budget):
            budget -= len(text)
            sections.append(f"{path} as it is now:\n\n{text}")
    return "\n\n".join(sections)
