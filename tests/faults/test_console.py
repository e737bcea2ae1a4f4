"""The console is killed at moments of all kinds; the session goes on with all that was whole."""

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.campaign.size import spread
from tests.console.terminal import ENTER, Terminal

from steno.llm.testserver.responders import ReleaseEvent, Reply, ReplyBlock, text, tool
from steno.llm.testserver.scripted_responder import ScriptedResponder

pytestmark = pytest.mark.faults


def _script(gate: ReleaseEvent) -> ScriptedResponder:
    pieces = ("Half of", gate, " it.")
    half = ReplyBlock({"type": "text", "text": "Half of it."}, pieces)
    script = ScriptedResponder().on("first", "Noted.").on("last", "All is there.")
    return script.on(
        "work", [text("I begin."), tool("Bash", command="touch began; sleep 30"), tool("Glob", pattern="*")]
    ).on("half", Reply(content=(half,)))


def _asked(console: Terminal) -> None:
    console.say("work on it")
    console.sees("Permission")


def _running(console: Terminal) -> None:
    _asked(console)
    console.send("y")
    console.waits((console.project / "began").exists)


def _streaming(console: Terminal) -> None:
    console.say("half of it")
    console.sees("Half of")


def _typing(console: Terminal) -> None:
    console.send("not sent yet")
    console.sees("not sent yet")


def _sending(console: Terminal) -> None:
    console.send("work on it" + ENTER)


MOMENTS: dict[str, Callable[[Terminal], None]] = {
    "asked": _asked,
    "running": _running,
    "streaming": _streaming,
    "typing": _typing,
    "sending": _sending,
}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP])
@pytest.mark.parametrize("moment", spread(list(MOMENTS), least=2))
def test_killed_at_any_moment_the_session_goes_on(tmp_path: Path, moment: str, number: signal.Signals) -> None:
    gate = ReleaseEvent()
    with Terminal(tmp_path, _script(gate)) as console:
        console.open()
        console.say("first thing")
        console.told("Noted.")
        console.idle()
        MOMENTS[moment](console)
        console.kill(number)
        gate.release()
        console.open("-c")
        console.told("first thing", "Noted.")
        console.say("the last thing")
        console.told("All is there.")
        console.idle()
        said = json.dumps(console.server.requests[-1].body["messages"])
        assert "first thing" in said
        assert "Noted." in said
        console.proves()
