"""Lets a prompt into the conversation, with all that comes with it, or keeps it out."""

from typing import TYPE_CHECKING, Any, Final

from steno.agent import events
from steno.agent.gates import Kept
from steno.agent.mentions import attached
from steno.agent.said import Companion, Said
from steno.agent.sizes import text_of
from steno.model.wire import Block

if TYPE_CHECKING:
    from steno.agent.loop import Agent

__all__ = ["accompany", "admit"]

_KEPT_OUT: Final = "A hook kept the prompt out."


async def admit(agent: "Agent", said: Said) -> str:
    """Let a prompt in; return why it is not to be answered, if it is not."""
    if said.refusal:
        return _refused(agent, said.kept, said.refusal)
    talk = agent.talk
    typed = said.typed or text_of(said.content)
    gate = await agent.caller.gates(*agent.bounds.beginning(typed))
    agent.tell(gate)
    if gate.blocked and not gate.ends:
        return _refused(agent, gate.kept, gate.reason)
    while agent.ahead:
        talk.keep(agent.ahead[:1])
        # Only now: what could not be saved is kept for the next prompt.
        del agent.ahead[0]
    uuid = _submit(agent, said.content, typed)
    await agent.caller.keeping.begin(uuid)
    agent.emit(events.Prompted(typed, uuid))
    # Nobody types what a sub-agent is told.
    own = "" if agent.bounds.agent else typed
    if said.companion is not None:
        await accompany(agent, said.companion, own)
    else:
        talk.keep(await attached(agent, own))
    talk.keep((*said.kept, *(each for each in gate.kept if not each.subtype)))
    for words in gate.context:
        talk.prompt(words, meta=True)
    if not gate.ends:
        return ""
    talk.prompt(_words(gate.kept, gate.reason), meta=True)
    return _refused(agent, gate.kept, gate.reason)


def _submit(agent: "Agent", content: str | list[Block], typed: str) -> str:
    """Take down a prompt; what a sub-agent is told is nobody's prompt."""
    if agent.bounds.agent:
        return agent.talk.prompt(content, typed=typed)
    mode, interactive = agent.caller.guard.mode, agent.interactive
    return agent.talk.submit(content, typed=typed, mode=mode, interactive=interactive)


async def accompany(agent: "Agent", companion: Companion, typed: str = "") -> None:
    """Say what follows a prompt, or a call, in the user's name, with the files that are named."""
    fields: dict[str, Any] = {"turnCompanion": True, **companion.fields}
    agent.talk.prompt(companion.content, meta=True, **fields)
    agent.talk.keep(await attached(agent, typed, companion.mentions))
    agent.talk.keep(companion.kept)


def _refused(agent: "Agent", kept: tuple[Kept, ...], reason: str) -> str:
    """Take down that a prompt is not answered; return the words of it."""
    for note in kept:
        if note.subtype:
            (uuid,) = agent.talk.keep((note,))
            agent.emit(events.KeptOut(note.body, uuid))
    return _words(kept, reason)


def _words(kept: tuple[Kept, ...], reason: str) -> str:
    told = (str(note.body["content"]) for note in kept if note.subtype)
    return next(told, reason or _KEPT_OUT)
