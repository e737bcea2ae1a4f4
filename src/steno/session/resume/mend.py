"""Entries → entries that can be sent: open calls settled, what the API would refuse left out."""

from typing import Any, Final

from steno.session.resume.clients import Client
from steno.session.resume.entries import Entry, only_thinking, text_block

__all__ = ["INTERRUPTED", "NO_RESPONSE", "mend"]

INTERRUPTED: Final = (
    "[Tool call interrupted: the session ended before this call's result was recorded]"
)
NO_RESPONSE: Final = "No response requested."
_CONTINUE: Final = "Continue from where you left off."


def mend(entries: list[Entry], client: Client, *, ends: bool = True) -> list[Entry]:
    """Settle open calls, drop what is empty, and answer a prompt that was never answered.

    `ends` says whether the last record is a message, and no note or event behind one.
    """
    entries = _without_hollow_responses(entries)
    entries = _settle_calls(entries, client)
    entries = _without_hollow_responses(entries)
    if client.answers_prompts:
        entries = _with_an_answer(entries, client, ends=ends)
    return [entry for entry in entries if not (entry.error or _says_nothing(entry))]


def _settle_calls(entries: list[Entry], client: Client) -> list[Entry]:
    answered = {
        block.get("tool_use_id")
        for entry in entries
        for block in entry.blocks
        if block.get("type") == "tool_result"
    }
    open_calls = {call for entry in entries for call in entry.calls if call not in answered}
    if not open_calls:
        return entries
    cut_off, kept = (
        _open_at_the_end(entries, open_calls) if client.answers_interrupted else ([], set[str]())
    )
    dropped = open_calls - kept - set(cut_off)
    for entry in entries:
        if dropped.intersection(entry.calls):
            entry.blocks = [block for block in entry.blocks if block.get("id") not in dropped]
    return [*entries, *(Entry("user", [_interrupted(call)], kind="synthetic") for call in cut_off)]


def _open_at_the_end(entries: list[Entry], open_calls: set[str]) -> tuple[list[str], set[str]]:
    """Return the calls that the end of the session cut off, and those of its turn that stay open."""
    messages = [entry for entry in entries if entry.kind == "message"]
    while messages and messages[-1].role == "assistant" and only_thinking(messages[-1].blocks):
        messages.pop()
    if not messages:
        return [], set()
    prompts = [at for at, entry in enumerate(messages) if _is_prompt(entry)]
    turn = messages[prompts[-1] + 1 :] if prompts else messages
    last = next((entry for entry in reversed(turn) if entry.role == "assistant"), None)
    if last is None:
        return [], set()
    response = [entry for entry in turn if entry.group == last.group]
    cut_off = [call for entry in response for call in entry.calls if call in open_calls]
    if not turn[-1].brings_results:
        return cut_off, set()
    return cut_off, {call for entry in turn for call in entry.calls if call in open_calls}


def _is_prompt(entry: Entry) -> bool:
    return entry.role == "user" and not entry.brings_results


def _interrupted(call: str) -> dict[str, Any]:
    return {"type": "tool_result", "content": INTERRUPTED, "is_error": True, "tool_use_id": call}


def _says_nothing(entry: Entry) -> bool:
    """Whether an assistant entry holds no block, or blank text only."""
    if entry.role != "assistant":
        return False
    return all(
        block.get("type") == "text" and not str(block.get("text", "")).strip()
        for block in entry.blocks
    )


def _without_hollow_responses(entries: list[Entry]) -> list[Entry]:
    """Leave out responses that hold nothing but blank text and reasoning."""
    substantial = {entry.group for entry in entries if _is_substantial(entry)}
    return [e for e in entries if e.role != "assistant" or e.group in substantial or e.error]


def _is_substantial(entry: Entry) -> bool:
    if entry.role != "assistant" or entry.error:
        return False
    return not _says_nothing(entry) and not only_thinking(entry.blocks)


def _behind_reminders(entries: list[Entry], place: int) -> int:
    while place < len(entries) and entries[place].kind == "reminder":
        place += 1
    return place


def _with_an_answer(entries: list[Entry], client: Client, *, ends: bool) -> list[Entry]:
    """Put an answer behind a last prompt or result that the model never got to."""
    for place in range(len(entries) - 1, -1, -1):
        entry = entries[place]
        if entry.kind not in ("message", "synthetic"):
            continue
        if entry.role == "assistant":
            return entries
        counts = client.answers_only == "last record or result" and entry.brings_results
        if client.answers_only and not (ends or counts):
            return entries
        answer = Entry("assistant", [text_block(NO_RESPONSE)], kind="synthetic", group=object())
        if client.asks_to_continue and entry.brings_results:
            prompt = Entry("user", [text_block(_CONTINUE)], kind="synthetic")
            return [*entries, prompt, answer]
        behind = _behind_reminders(entries, place + 1)
        return [*entries[:behind], answer, *entries[behind:]]
    return entries
