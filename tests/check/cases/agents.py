"""Sub-agents: marks that do not agree, and files that are there or not."""

from typing import Any

from tests.check.check_answers import Case
from tests.check.small_sessions import Records, call, note, output, prompt, reply

from steno.check.evidence import SubagentFileInfo

__all__ = ["cases"]


def _result(number: int, name: Any, *, detail: bool = True) -> dict[str, Any]:
    return output(number, "a", toolUseResult={"agentId": name} if detail else name)


def _asked(name: Any = "x", *, detail: bool = True) -> Records:
    return [prompt(1), call(2, "a"), _result(3, name, detail=detail), reply(4)]


def _file(name: str, records: int = 2, flagged: int = 2) -> SubagentFileInfo:
    return SubagentFileInfo(name, f"/w/agent-{name}.jsonl", records, flagged)


def _marked(*lines: int) -> Records:
    made = [prompt(1), reply(2), prompt(3), reply(4)]
    for line in lines:
        made[line - 1]["isSidechain"] = True
    return made


def cases() -> dict[str, list[Case]]:
    """Return the files by what is looked at."""
    inline = [prompt(5, on=0, isSidechain=True, agentId="x"), reply(6, isSidechain=True, agentId="x")]
    again = [*_asked(), call(5, "b"), output(6, "b", toolUseResult={"agentId": "x"}), reply(7)]
    return {
        "files": [
            Case("nobody looked", _asked()),
            Case("none", _asked(), agents=[]),
            Case("there", _asked(), agents=[_file("x")]),
            Case("there, and another", _asked(), agents=[_file("x"), _file("y")]),
            Case("another", _asked(), agents=[_file("y")]),
            Case("named by nobody", [prompt(1), reply(2)], agents=[_file("y")]),
            Case("not marked", _asked(), agents=[_file("x", 2, 0)]),
            Case("partly marked", _asked(), agents=[_file("x", 2, 1)]),
            Case("empty", _asked(), agents=[_file("x", 0, 0)]),
            Case("in the session", [*_asked(), *inline], agents=[]),
            Case("named twice", again, agents=[]),
            Case("named twice, there", again, agents=[_file("x")]),
            Case("name empty", _asked(""), agents=[]),
            Case("name a number", _asked(5), agents=[]),
            Case("no details", _asked("text", detail=False), agents=[]),
            Case("details a list", _asked(["x"], detail=False), agents=[]),
            Case("details on a prompt", [prompt(1, toolUseResult={"agentId": "x"}), reply(2)], agents=[]),
            Case("of an agent's file", _asked(), "agent-y", agents=[]),
        ],
        "marks": [
            Case("none", _marked()),
            Case("the first", _marked(1)),
            Case("the second", _marked(2)),
            Case("the last", _marked(4)),
            Case("the last two", _marked(3, 4)),
            Case("all but the first", _marked(2, 3, 4)),
            Case("all", _marked(1, 2, 3, 4)),
            Case("all messages", [*_marked(1, 2, 3, 4), note(5)]),
            Case("a note", [*_marked(), note(5, isSidechain=True)]),
            Case("a note alone", [note(1, isSidechain=True)]),
            Case("all, a progress too", [*_marked(1, 2, 3, 4), note(5, "progress", isSidechain=True)]),
            Case("none in an agent's file", _marked(), "agent-x"),
            Case("some in an agent's file", _marked(1, 2), "agent-x"),
            Case("all in an agent's file", _marked(1, 2, 3, 4), "agent-x"),
            Case("nothing in an agent's file", [], "agent-x"),
        ],
    }
