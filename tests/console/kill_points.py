"""Moments at which a terminal may be killed: each brings a console there."""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeAlias

from tests.console.terminal import Terminal

from steno.llm.testserver.responders import ReleaseEvent, Reply, ReplyBlock, text, thinking, tool
from steno.llm.testserver.scripted_responder import ScriptedResponder

__all__ = ["MOMENTS", "Moment", "killed"]

Moment: TypeAlias = tuple[ScriptedResponder, Callable[[Terminal], object], Callable[[Terminal], None]]
"""What the model says, how the moment is reached, and what has to be let go behind it."""


def _nothing(_console: Terminal) -> None:
    pass


def _streamed(*pieces: str | ReleaseEvent) -> ReplyBlock:
    words = "".join(piece for piece in pieces if isinstance(piece, str))
    return ReplyBlock({"type": "text", "text": words}, tuple(pieces))


def _begun() -> ScriptedResponder:
    """Return how every one of them begins: a turn that is over."""
    return ScriptedResponder().on("first", "Noted.")


def answering() -> Moment:
    """In the middle of an answer, behind a step that is done."""
    gate = ReleaseEvent()
    script = _begun().on("second", [text("I begin."), tool("Glob", pattern="*")])
    script.then(Reply(content=(_streamed("Half of", gate, " it."),)))
    return script, lambda console: console.sees("Half of"), lambda _: gate.release()


def thought() -> Moment:
    """Behind a thought, before the answer."""
    gate = ReleaseEvent()
    script = _begun().on("second", [thinking("Let me see."), tool("Glob", pattern="*")])
    script.then([thinking("So that is it."), "Never said."], after=gate)
    return script, lambda _: gate.wait_reached(), lambda _: gate.release()


def running() -> Moment:
    """While a command runs that was allowed."""
    command = "echo $$ > pid && mv pid began && exec sleep 60"
    script = _begun().on("second", [text("I run it."), tool("Bash", command=command)])

    def there(console: Terminal) -> None:
        console.sees("run this command?")
        console.send("y")
        console.waits((console.project / "began").exists)

    def end(console: Terminal) -> None:
        with suppress(ProcessLookupError):
            os.kill(int((console.project / "began").read_text()), signal.SIGKILL)

    return script, there, end


def asking() -> Moment:
    """While it asks for permission, with one call of the same answer done already."""
    calls = [tool("Glob", pattern="*"), tool("Bash", command="touch never")]
    script = _begun().on("second", [text("May I?"), *calls])
    return script, lambda console: console.sees("run this command?", "Yes"), _nothing


MOMENTS: Final[dict[str, Callable[[], Moment]]] = {
    each.__name__: each for each in (answering, thought, running, asking)
}


def killed(terminal: Callable[..., Terminal], moment: str) -> Terminal:
    """Return a console that was killed at a moment."""
    script, reach, release = MOMENTS[moment]()
    script.on("third", "All is there.")
    console = terminal(script)
    console.open()
    console.say("first thing")
    console.told("Noted.")
    console.idle()
    console.say("second thing")
    reach(console)
    console.kill(signal.SIGKILL)
    release(console)
    return console
