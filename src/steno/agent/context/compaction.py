"""Keeps the conversation within the context window: trims old tool results, then compacts.

Results are trimmed in large batches and stay trimmed, so that between two trims the request prefix stays
the same for the prompt cache. A record lists the trimmed calls, so that a resumed session sends the same
messages.

Compaction keeps the last turn verbatim. The summary is made from plain text, in several pieces if needed,
so that no conversation is too long to compact.
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
"""Share of the usable window above which old results are trimmed."""
_RETAINED_SHARE: Final = 0.2
"""Share of the window at its end in which results are never trimmed."""
_MIN_SAVED_SHARE: Final = 0.1
"""Share of the window that a trim must save, because each trim invalidates the cache."""
_MIN_RESULT_CHARACTERS: Final = 2_000
"""Minimum number of characters of a result to be trimmed."""


class Trimmer:
    """Trims old tool results when the context window fills up."""

    def __init__(self) -> None:
        self._skip_below = 0.0
        """Context size below which another trim cannot save enough."""

    def __call__(self, agent: "Agent", context: int, *, window: int, limit: float) -> bool:
        """Trim old results if it saves enough; return whether results were trimmed.

        `context` is the context size of the next request, `limit` the maximum that fits.
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
    """Return the context size of the next request: the last reported size plus later additions."""
    return (agent.meter.context_size or fixed_tokens(agent)) + agent.conversation.uncounted_tokens


def fixed_tokens(agent: "Agent") -> int:
    """Return the estimated tokens of the system prompt and tools."""
    return estimate_blocks([*agent.request_config.system, *agent.executor.tools.to_api()])


def _old_results(messages: Sequence[Message], retained_tokens: int) -> tuple[list[str], int]:
    """Return the calls with large, old results, oldest first, and the tokens of these results."""
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
"""Share of the window reserved for making a summary."""
_TAIL_SHARE: Final = 0.2
"""Share of the window up to which the last turn is kept verbatim."""
_PIECE_SHARE: Final = 0.5
"""Share of the window for one piece of a long conversation."""
_COUNT_FROM_SHARE: Final = 0.5
_MIN_PIECE: Final = 2_000
"""Number of characters below which a piece is not split further."""
_MAX_FILES: Final = 5
_MAX_FILE_CHARACTERS: Final = 20_000
_FILES_SHARE: Final = 0.1
"""Share of the window for the recent files that are added after a compaction."""
_SUMMARIZER: Final = (
    "Summarize a session between a user and a coding agent, so that the agent can continue without "
    "having seen it. Be precise about names, paths, commands, errors, decisions, the user's requests and "
    "constraints, completed work and remaining work. Do not write a preamble."
)
_SUMMARY_PROMPT: Final = "Summarize this session.{wishes}\n\n<session>\n{text}\n</session>"
_NEXT_SUMMARY_PROMPT: Final = (
    "This is the summary of a session so far:\n\n<summary>\n{summary}\n</summary>\n\nThe session "
    "continues below. Write one summary of the whole session.{wishes}\n\n<session>\n{text}\n</session>"
)
_SUMMARY_HEADER: Final = "This session continues an earlier conversation that was too long. Summary:"


class ContextCompactor:
    """Compacts the conversation automatically or on request."""

    def __init__(self, *, window: int | None = None, automatic: bool = True) -> None:
        self._window = window
        self._automatic = automatic
        self._trimmer = Trimmer()

    async def __call__(self, agent: Agent) -> None:
        """Trim old results, and compact if the next request might not fit."""
        if not self._automatic:
            return
        window = self.window(agent)
        # A large `max_tokens` must not use up the whole window.
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
        """Compact because the API rejected the request as too long; return whether it was compacted."""
        return self._automatic and await self.compact(agent, "auto")

    def window(self, agent: Agent) -> int:
        """Return the context window of the model in tokens."""
        return self._window or context_window(agent.request_config.model)

    async def compact(
        self,
        agent: Agent,
        trigger: Literal["auto", "manual"],
        instructions: str = "",
        after_summary: Callable[[], None] = lambda: None,
    ) -> bool:
        """Replace everything but the last turn by a summary; return whether it was compacted.

        `after_summary` is called right after the summary was recorded.

        Raises:
            ApiError: The request for the summary failed.
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
            agent.emit(Notice("The model returned no summary; the conversation was not compacted.", "warning"))
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
        instruction_text = f" Focus on: {instructions}" if instructions else ""
        piece_size = self._character_budget(agent, _PIECE_SHARE)
        remaining = "\n\n".join(transcript_lines(messages))
        summary = ""
        while remaining:
            template = _NEXT_SUMMARY_PROMPT if summary else _SUMMARY_PROMPT
            prompt = template.format(wishes=instruction_text, summary=summary, text=remaining[:piece_size])
            try:
                response = await ask_model(agent, _SUMMARIZER, prompt)
            except ApiError as error:
                # Some texts have many more tokens than estimated from their length.
                if not error.is_context_overflow or piece_size <= _MIN_PIECE:
                    raise
                piece_size = min(piece_size, len(remaining)) // 2
                continue
            summary, remaining = message_text(response.blocks).strip(), remaining[piece_size:]
            # Without a summary, the conversation must not be discarded.
            if not summary or response.stop_reason == "refusal":
                return ""
        return summary

    def _last_prompt_text(self, agent: Agent) -> str:
        prompt_text = agent.conversation.last_prompt[: self._character_budget(agent, _PIECE_SHARE)]
        return f"The last message of the user was:\n\n{prompt_text}" if prompt_text else ""

    def _character_budget(self, agent: Agent, share: float) -> int:
        return round(self.window(agent) * share) * CHARACTERS_PER_TOKEN


@runtime_checkable
class _TokenCounter(Protocol):
    """A model client that can count the tokens of a request."""

    async def count_tokens(self, request: Request) -> int: ...


async def _count_context(agent: Agent, limit: float) -> int:
    """Return the context size of the next request for a conversation without reported usage.

    Far from the limit an estimate is enough; close to it the API counts the tokens, because a request
    that is too long is rejected.
    """
    estimated = next_request_tokens(agent)
    if estimated < limit * _COUNT_FROM_SHARE or not isinstance(agent.model, _TokenCounter):
        return estimated
    try:
        return await agent.model.count_tokens(agent.build_request())
    except ApiError:
        return estimated


def _split_messages(messages: list[Message], budget: int) -> tuple[list[Message], list[Message]]:
    """Return the messages to summarize and those to keep: the last turn, or as much of its end as fits."""
    start = max((index for index, message in enumerate(messages) if is_prompt(message)), default=len(messages))
    if estimate_messages(messages[start:]) <= budget:
        # A single turn is summarized completely, since keeping it would save nothing.
        return (messages[:start], messages[start:]) if start else (messages, [])
    # A tail that begins with a response contains the calls of all its results.
    for place in range(start, len(messages)):
        tail = messages[place:]
        if messages[place]["role"] == "assistant" and estimate_messages(tail) <= budget:
            return messages[:place], tail
    return messages, []


def _recent_files(agent: Agent, budget: int) -> str:
    """Return the current content of recently used files, as far as it fits."""
    sections: list[str] = []
    for path in reversed(list(agent.executor.context.file_stamps)[-_MAX_FILES:]):
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read(_MAX_FILE_CHARACTERS + 1)
        except (OSError, UnicodeDecodeError):
            continue
        if len(text) <= min(_MAX_FILE_CHARACTERS, budget):
            budget -= len(text)
            sections.append(f"Current content of {path}:\n\n{text}")
    return "\n\n".join(sections)
