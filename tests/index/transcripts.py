"""Small transcripts, one for each thing that the index counts, follows or leaves out."""

import json
from collections.abc import Callable
from typing import Any, Final, Self

__all__ = ["TRANSCRIPTS", "Script", "call", "result"]

Json = dict[str, Any]
_USAGE: Final = {"input_tokens": 3, "output_tokens": 5}


def call(name: str, number: int | str = 1, **given: Any) -> Json:
    """Return a block that calls a tool."""
    return {"type": "tool_use", "id": f"call-{number}", "name": name, "input": given}


def result(number: int | str = 1, content: Any = "ok", **fields: Any) -> Json:
    """Return a block that answers a call."""
    return {"type": "tool_result", "tool_use_id": f"call-{number}", "content": content, **fields}


def said(text: str) -> Json:
    return {"type": "text", "text": text}


class Script:
    """Writes records one after the other, each a second later and linked to the one before."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.tip: str | None = None
        self.number = 0

    def add(self, kind: str, **fields: Any) -> Self:
        """Add a record of the conversation; a field given as `...` is left out."""
        self.number += 1
        name = f"u{self.number}"
        record: Json = {
            "parentUuid": self.tip,
            "isSidechain": False,
            "cwd": "/p",
            "sessionId": "s",
            "version": "2.1.0",
            "gitBranch": "main",
            "type": kind,
            "uuid": name,
            "timestamp": f"2026-11-15T12:{self.number // 60:02}:{self.number % 60:02}.000Z",
            **fields,
        }
        self.tip = record["uuid"] if record["uuid"] is not ... else self.tip
        return self.raw(record)

    def raw(self, record: Json) -> Self:
        """Add any object."""
        fields = {name: value for name, value in record.items() if value is not ...}
        self.lines.append(json.dumps(fields, separators=(",", ":")).encode())
        return self

    def line(self, data: bytes) -> Self:
        """Add any line."""
        self.lines.append(data)
        return self

    def user(self, content: Any, **fields: Any) -> Self:
        """Add what a person says, or results."""
        return self.add("user", message={"role": "user", "content": content}, **fields)

    def bot(self, *blocks: Any, name: Any = "", model: Any = "claude-a", usage: Any = None, **fields: Any) -> Self:
        """Add a line of a response."""
        content: Any = [said(each) if isinstance(each, str) else each for each in blocks]
        message = {
            "id": name or f"m{self.number + 1}",
            "role": "assistant",
            "model": model,
            "content": content,
            "usage": dict(_USAGE) if usage is None else usage,
            "stop_reason": fields.pop("stop", "end_turn"),
        }
        message = {name: value for name, value in message.items() if value is not ...}
        return self.add("assistant", message=message, **fields)

    def system(self, subtype: str, **fields: Any) -> Self:
        """Add a note of the client."""
        return self.add("system", subtype=subtype, **fields)

    def bytes(self) -> bytes:
        """Return the file."""
        return b"".join(line + b"\n" for line in self.lines)


def _command(name: str) -> str:
    return f"<command-name>/{name}</command-name>\n<command-message>{name}</command-message>"


def _many_calls(number: int) -> Script:
    return Script().user("Go.").bot(*(call("Read", each, path=f"/{each}") for each in range(number)))


def _far(number: int) -> Script:
    """Return a script with so many notes between two messages."""
    made = Script().user("One").bot("Two")
    for _ in range(number):
        made.system("informational", content="x")
    return made.user("Three").bot("Four")


def _compacted(parent: Any = None, logical: Any = "u2") -> Script:
    made = Script().user("One").bot("Two")
    made.system("compact_boundary", parentUuid=parent, logicalParentUuid=logical)
    return made.user("The summary.", isCompactSummary=True).bot("On.").user("Three").bot("Four")


_EDIT: Final = {"file_path": "/a.py", "old_string": "x\ny", "new_string": "x\nz\nw"}
_PATCH: Final = {"structuredPatch": [{"lines": [" a", "-b", "+c", "+d", "+e"]}]}
_WRITES: Final = {"cache_creation": {"ephemeral_5m_input_tokens": 7, "ephemeral_1h_input_tokens": 8}}
_FULL: Final = {
    **_USAGE,
    "cache_creation_input_tokens": 99,
    "cache_read_input_tokens": 11,
    "server_tool_use": {"web_search_requests": 2},
    "speed": "fast",
    **_WRITES,
}
_BIG: Final = {"input_tokens": 10**12 + 1, "output_tokens": -4, "cache_read_input_tokens": 10**12}
_REFUSAL: Final = "The user doesn't want to proceed with this tool use."

TRANSCRIPTS: Final[dict[str, Callable[[], Script]]] = {
    # Prompts, by where they come from
    "two turns": lambda: Script().user("One\n two").bot("Two").user("Three").bot("Four"),
    "prompt of blocks": lambda: Script().user([said("One"), said(""), {"type": "image"}]).bot("Two"),
    "no prompt": lambda: Script().bot("Two").bot("Three"),
    "meta prompt": lambda: Script().user("Caveat", isMeta=True).user("One").bot("Two"),
    "command": lambda: Script().user(_command("model")).user("One").bot("Two"),
    "command that is answered": lambda: Script().user(_command("review")).bot("Two").user("x").bot("y"),
    "command at the end": lambda: Script().user("One").bot("Two").user(_command("cost")),
    "two commands": lambda: Script().user(_command("a")).user(_command("b")).user("One").bot("Two"),
    "exit": lambda: Script().user("One").bot("Two").user(_command("exit")),
    "quit": lambda: Script().user("One").bot("Two").user(_command("quit")),
    "exit and on": lambda: Script().user("One").bot("Two").user(_command("exit")).user("Three"),
    "shell": lambda: Script().user("<bash-input>ls</bash-input>").user("<bash-stdout>a</bash-stdout>"),
    "queued": lambda: Script().user("One").bot("Two").user("More", promptSource="queued").bot("Three"),
    "interrupt": lambda: Script().user("One").bot("Two").user("[Request interrupted by user]"),
    "interrupt and on": lambda: (
        Script().user("One").bot(call("Bash")).user([result(is_error=True, content=_REFUSAL)])
        .user("[Request interrupted by user for tool use]").user("Three").bot("Four")
    ),
    "notification": lambda: Script().user("One").bot("Two").user("<task-notification>x").bot("Three"),
    "notification first": lambda: Script().user("<task-notification>x").user("One").bot("Two"),
    "teammate": lambda: Script().user('<teammate-message name="a">hi').bot("Two"),
    "hook": lambda: Script().user("<session-start-hook>x").user("One").bot("Two"),
    "long prompt": lambda: Script().user("word " * 300).bot("Two"),
    "prompt with spaces": lambda: Script().user("  One\t two \n\n three ").bot("Two"),
    "prompt at the limit": lambda: Script().user("x" * 199 + "yz").user("b").bot("Two"),
    "prompt behind spaces": lambda: Script().user(" " * 798 + "abc").bot("Two"),
    # Answers
    "empty answer": lambda: Script().user("One").bot().bot("  ").bot("Two"),
    "answer as text": lambda: Script().user("One").add("assistant", message={"content": "Two"}),
    "blank text answer": lambda: Script().user("One").add("assistant", message={"content": " "}),
    "thinking": lambda: Script().user("One").bot({"type": "thinking", "thinking": "Hm"}, name="m")
        .bot("Two", name="m"),
    "redacted thinking": lambda: Script().user("One").bot({"type": "redacted_thinking", "data": "x"}),
    "server tool": lambda: Script().user("One").bot(
        {"type": "server_tool_use", "id": "s1", "name": "web", "input": {"query": "tide"}}, "Two"),
    "unknown block": lambda: Script().user("One").bot({"type": "odd", "note": "text", "n": 1}).bot("T"),
    "image in an answer": lambda: Script().user("One").bot({"type": "image", "source": {}}, "Two"),
    "no message": lambda: Script().user("One").add("assistant").bot("Two"),
    "no content": lambda: Script().user("One").add("assistant", message={"id": "m", "model": "x"}),
    "synthetic": lambda: Script().user("One").bot("Two").bot("No response", model="<synthetic>"),
    "synthetic with a call": lambda: Script().user("One").bot(call("Bash"), model="<synthetic>"),
    "other model later": lambda: Script().user("One").bot("a").bot("b", model="claude-b"),
    "no model": lambda: Script().user("One").bot("a", model=...).bot("b", model=""),
    # Errors
    "api error": lambda: Script().user("One").system("api_error", error={}).bot("Two"),
    "api errors": lambda: Script().user("One").system("api_error").system("api_error").bot("Two")
        .user("Three").system("api_error"),
    "api error, note, answer": lambda: Script().user("One").system("api_error")
        .system("informational", content="x").bot("Two"),
    "api error, note, error": lambda: Script().user("One").system("api_error")
        .system("informational", content="x").system("api_error").bot("Two"),
    "api error first": lambda: Script().system("api_error").user("One").bot("Two"),
    "api error, empty answer": lambda: Script().user("One").system("api_error").bot().bot("Two"),
    "error message": lambda: Script().user("One").bot("API Error", isApiErrorMessage=True,
        model="<synthetic>").user("Again").bot("Two"),
    "error message of a model": lambda: Script().user("One").bot("Err", isApiErrorMessage=True),
    "error message, empty answer": lambda: Script().user("One").bot(
        "Err", isApiErrorMessage=True).bot().bot("Two"),
    "error message calls": lambda: Script().user("One").bot(call("Bash"), isApiErrorMessage=True),
    "errors in a row": lambda: Script().user("One").bot("Err", isApiErrorMessage=True)
        .bot("Err", isApiErrorMessage=True),
    "api error then error message": lambda: Script().user("One").system("api_error")
        .bot("Err", isApiErrorMessage=True).user("Two").bot("Three"),
    "error, interrupt, prompt": lambda: Script().user("One").system("api_error")
        .user("[Request interrupted by user]").user("Two").bot("Three"),
    # Calls and results
    "call": lambda: Script().user("One").bot(call("Bash", command="ls")).user([result()]).bot("Two"),
    "call without a result": lambda: Script().user("One").bot(call("Bash", command="ls")),
    "question": lambda: Script().user("One").bot(call("AskUserQuestion")),
    "failed call": lambda: Script().user("One").bot(call("Bash")).user([result(is_error=True)]),
    "refused call": lambda: Script().user("One").bot(call("Bash"))
        .user([result(is_error=True, content=_REFUSAL)]).bot("Two"),
    "two calls": lambda: Script().user("One").bot(call("Bash", 1), call("Read", 2, path="/a"))
        .user([result(1), result(2, is_error=True)]).bot("Two"),
    "calls in two lines": lambda: Script().user("One").bot(call("Bash", 1), name="m")
        .bot(call("Read", 2), name="m").user([result(1)]).user([result(2)]).bot("Two"),
    "result in the middle": lambda: Script().user("One").bot(call("Bash", 1), name="m")
        .user([result(1)]).bot(call("Read", 2), name="m").user([result(2)]).bot("Two"),
    "result of nothing": lambda: Script().user("One").bot("Two").user([result(9)]).bot("Three"),
    "failed result of nothing": lambda: Script().user("One").bot("Two")
        .user([result(9, is_error=True)]),
    "result twice": lambda: Script().user("One").bot(call("Bash")).user([result()]).user([result()]),
    "call without an id": lambda: Script().user("One").bot(
        {"type": "tool_use", "name": "Bash", "input": {}}).user([{"type": "tool_result"}]),
    "call with odd input": lambda: Script().user("One").bot(
        {"type": "tool_use", "id": "c", "name": "Read", "input": ["x", {"y": "z"}]}),
    "call without a name": lambda: Script().user("One").bot({"type": "tool_use", "id": "c"}),
    "paths": lambda: Script().user("One").bot(
        call("Read", 1, file_path="/a"), call("NotebookEdit", 2, notebook_path="/n", new_source="x"),
        call("Glob", 3, path="/d"), call("X", 4, path=7), call("X", 5, path=7, file_path="/b"),
        call("X", 6, path="/p", notebook_path="/n", file_path="/f")),
    "result of blocks": lambda: Script().user("One").bot(call("Bash")).user(
        [result(content=[said("a"), {"type": "image"}, said(""), said("b")])]),
    "result without content": lambda: Script().user("One").bot(call("Bash"))
        .user([{"type": "tool_result", "tool_use_id": "call-1"}]),
    "result and words": lambda: Script().user("One").bot(call("Bash")).user([result(), said("And?")]),
    "same id again": lambda: Script().user("One").bot(call("Bash")).bot(call("Read"))
        .user([result()]).bot("Two"),
    "progress": lambda: Script().user("One").bot(call("Bash")).add("progress", data={"type": "x"})
        .user([result()]).bot("Two"),
    "hook progress": lambda: Script().user("One").system("api_error").add(
        "progress", data={"type": "hook_progress"}).bot("Two"),
    "other progress": lambda: Script().user("One").system("api_error").add(
        "progress", data={"type": "bash"}).bot("Two"),
    "detached progress": lambda: Script().user("One").bot("Two").add(
        "progress", parentUuid="zz", uuid="p").add("user", parentUuid="u2",
        message={"content": "Three"}).bot("Four"),
    "999 open calls": lambda: _many_calls(999),
    "1001 open calls": lambda: _many_calls(1001),
    # Edits
    "edit": lambda: Script().user("One").bot(call("Edit", **_EDIT)).user([result()]),
    "edit with a patch": lambda: Script().user("One").bot(call("Edit", **_EDIT))
        .user([result()], toolUseResult=_PATCH),
    "failed edit": lambda: Script().user("One").bot(call("Edit", **_EDIT))
        .user([result(is_error=True)], toolUseResult=_PATCH),
    "two edits": lambda: Script().user("One").bot(call("Edit", 1, **_EDIT), call("Write", 2,
        file_path="/b", content="1\n2\n")).user([result(1), result(2)], toolUseResult=_PATCH),
    "read with a patch": lambda: Script().user("One").bot(call("Read", file_path="/a"))
        .user([result()], toolUseResult=_PATCH),
    "edit without a path": lambda: Script().user("One").bot(call("Edit", old_string="a")),
    "edit, no patch": lambda: Script().user("One").bot(call("Edit", **_EDIT))
        .user([result()], toolUseResult={"type": "create", "structuredPatch": []}),
    "multi edit": lambda: Script().user("One").bot(call("MultiEdit", file_path="/a", edits=[
        {"old_string": "a", "new_string": "b\nc"}, 7, {"old_string": "d\ne", "new_string": ""}])),
    # Sub-agents
    "agent": lambda: Script().user("One").bot(call("Task", subagent_type="Explore" * 40))
        .user([result()], toolUseResult={"agentId": "a1"}).bot("Two"),
    "agent without a kind": lambda: Script().user("One").bot(call("Agent", subagent_type=3))
        .user([result()], toolUseResult={"agentId": "a1"}).bot("Two"),
    "agent, odd result": lambda: Script().user("One").bot(call("Task"))
        .user([result()], toolUseResult=["agentId"]).bot("Two"),
    "failed agent": lambda: Script().user("One").bot(call("Task", subagent_type="Plan"))
        .user([result(is_error=True)], toolUseResult={"agentId": "a2"}).bot("Two"),
    "no agent": lambda: Script().user("One").bot(call("Bash"))
        .user([result()], toolUseResult={"agentId": "a1"}).bot("Two"),
    "sidechain inside": lambda: Script().user("One").bot(call("Task"))
        .user("Look", isSidechain=True, agentId="a1", parentUuid=None)
        .bot("I look", isSidechain=True, agentId="a1", model="claude-s")
        .user([result()], parentUuid="u2").bot("Two"),
    "agent's own file": lambda: Script().user("Look", isSidechain=True, agentId="a1")
        .bot("I look", isSidechain=True, agentId="a1").bot("So", isSidechain=True),
    "agent's file without an id": lambda: Script().user("Look", isSidechain=True)
        .bot("I look", isSidechain=True),
    # Where records hang
    "rewind": lambda: Script().user("One").bot("Two").user("Three").bot("Four")
        .user("Five", parentUuid="u2").bot("Six"),
    "orphan": lambda: Script().user("One").bot("Two").user("Three", parentUuid="zz").bot("Four"),
    "root again": lambda: Script().user("One").bot("Two").user("Three", parentUuid=None).bot("Four"),
    "same uuid": lambda: Script().user("One").bot("Two").user("Three", uuid="u2").bot("Four"),
    "no uuid": lambda: Script().user("One").bot("Two").user("Three", uuid=...).bot("Four"),
    "last prompt at the tip": lambda: Script().user("One").bot("Two")
        .raw({"type": "last-prompt", "lastPrompt": "One" * 90, "leafUuid": "u2"}),
    "last prompt elsewhere": lambda: Script().user("One").bot("Two")
        .raw({"type": "last-prompt", "lastPrompt": "<command-name>/x", "leafUuid": "zz"}),
    "last prompt, no leaf": lambda: Script().user("One").bot("Two").raw({"type": "last-prompt"}),
    "255 notes": lambda: _far(255),
    "256 notes": lambda: _far(256),
    "attachment": lambda: Script().user("One").add("attachment", attachment={"type": "x", "t": "y z"})
        .bot("Two"),
    "unknown type": lambda: Script().user("One").add("surprise", text="hello there").bot("Two"),
    "answer to the response's first line": lambda: Script().user("One").bot("a", name="m").bot("b", name="m")
        .user("Three", parentUuid="u2").bot("Four"),
    # Compactions
    "compaction": _compacted,
    "compaction linked": lambda: _compacted(parent="u2", logical=...),
    "compaction of nothing": lambda: Script().system("compact_boundary").user(
        "The summary.", isCompactSummary=True).user("One").bot("Two"),
    "compaction elsewhere": lambda: _compacted(logical="zz"),
    "compaction, nothing after": lambda: Script().user("One").bot("Two")
        .system("compact_boundary", parentUuid=None, logicalParentUuid="u2"),
    "summary prompt alone": lambda: Script().user("One").bot("Two")
        .user("The summary.", isCompactSummary=True).bot("Three"),
    # Times
    "turn duration": lambda: Script().user("One").bot("Two").system("turn_duration", durationMs=1234.5)
        .user("Three").bot("Four"),
    "negative duration": lambda: Script().user("One").bot("Two").system("turn_duration", durationMs=-1),
    "no duration": lambda: Script().user("One").bot("Two").system("turn_duration"),
    "no times": lambda: Script().user("One", timestamp=...).bot("Two", timestamp="never"),
    "times go back": lambda: Script().user("One").bot("Two", timestamp="2026-11-15T11:00:00.000Z")
        .bot("Three").user("Four", timestamp="2026-11-15T10:00:00.000Z").bot("Five"),
    # Figures
    "all figures": lambda: Script().user("One").bot("Two", usage=_FULL),
    "old cache figure": lambda: Script().user("One").bot("Two", usage={
        **_USAGE, "cache_creation_input_tokens": 9}),
    "figures of nothing": lambda: Script().user("One").bot("Two", usage={
        "input_tokens": None, "output_tokens": None, "cache_read_input_tokens": None,
        "cache_creation_input_tokens": None, "server_tool_use": {"web_search_requests": None}}),
    "absurd figures": lambda: Script().user("One").bot("Two", usage=_BIG),
    "no usage": lambda: Script().user("One").bot("Two", usage=...).add("user", message=None),
    "growing figures": lambda: Script().user("One").bot("a", name="m").bot("b", name="m", usage={
        "input_tokens": 3, "output_tokens": 9}).bot("c", name="m", usage={"output_tokens": 8}),
    "estimated": lambda: Script().user("One").bot("Two", stop=None, version="2.1.20"),
    "not estimated": lambda: Script().user("One").bot("Two", stop=None, version="2.1.200"),
    "request id": lambda: Script().user("One").bot("a", name=..., requestId="r1").bot("b", name=...),
    "no id at all": lambda: Script().user("One").bot("a", name=..., uuid=...),
    "forked": lambda: Script().user("One", forkedFrom={"sessionId": "old"}).bot(
        "Two", forkedFrom={"sessionId": "old"}).bot("Three", forkedFrom={}),
    # Other records
    "titles": lambda: Script().raw({"type": "custom-title", "customTitle": "Mine"}).user("One")
        .raw({"type": "ai-title", "aiTitle": "Its"}).bot("Two")
        .raw({"type": "custom-title", "customTitle": ""}).raw({"type": "ai-title"}),
    "summary record": lambda: Script().raw({"type": "summary", "summary": "S" * 300, "leafUuid": "z"})
        .raw({"type": "summary", "summary": ""}).raw({"type": "summary", "summary": "T"}),
    "ai title": lambda: Script().user("One").bot("x").raw({"type": "ai-title", "aiTitle": "Its"}),
    "tags": lambda: Script().raw({"type": "tag", "tag": "ship it"})
        .raw({"type": "agent-name", "agentName": "Ada"}).user("One").bot("Two"),
    "pull request": lambda: Script().user("One").bot("Two").raw(
        {"type": "pr-link", "prUrl": "https://example.com/1"}).raw({"type": "pr-link"}),
    "cost state": lambda: Script().user("One").bot("Two").raw({"type": "cost-state"}),
    "silent records": lambda: Script().raw({"type": "mode", "mode": "plan"}).user("One").raw(
        {"type": "file-history-snapshot", "snapshot": {"a": "b c"}}).bot("Two"),
    "branches": lambda: Script().user("One", gitBranch="HEAD").bot("Two", gitBranch="").user("x",
        gitBranch="dev", cwd="/q", version="3", sessionId="t").bot("y", gitBranch=...),
    "nothing said": lambda: Script().system("informational", content="Hello you"),
    "no type": lambda: Script().raw({"uuid": "a", "text": "two words"}).user("One").bot("Two"),
    # Lines that are not of the usual form
    "blank lines": lambda: Script().line(b"").user("One").line(b"").line(b"").bot("Two").line(b""),
    "spaces around": lambda: Script().user("One").line(b'  {"type":"mode"} ').bot("Two"),
    "space before": lambda: Script().user("One").line(b' {"type":"mode"}').bot("Two"),
    "space behind": lambda: Script().user("One").bot("Two").line(b'{"type":"mode"} '),
    "newline inside": lambda: Script().user("One").line(b'{"type":\n"mode"}').bot("Two"),
    "zeros before": lambda: Script().user("One").line(b"\0\0" + b'{"type":"mode"}').bot("Two"),
    "not an object": lambda: Script().user("One").line(b'["a"]').bot("Two"),
    "torn line": lambda: Script().user("One").line(b'{"type":"user","mess').bot("Two"),
    "odd field": lambda: Script().user("One", cwd=7).bot("Two"),
    "two on a line": lambda: Script().user("One").line(b'{"type":"mode"}{"type":"mode"}').bot("Two"),
    "dialect": lambda: Script().raw({"type": "human", "text": "One", "uuid": "a"})
        .raw({"type": "tool_result", "content": "x", "uuid": "b"}),
    "message on a note": lambda: Script().user("One").system("x", message={"content": "y"}).bot("Two"),
    "content is an object": lambda: Script().user({"text": "One"}).bot("Two"),
    "space behind a message": lambda: Script().user("One").line(
        b'{"type":"user","uuid":"u8","parentUuid":"u1","message":{"content":"x"}} ').bot("Two", parentUuid="u8"),
    "space behind the last message": lambda: Script().user("One").line(
        b'{"type":"user","uuid":"u8","parentUuid":"u1","message":{"content":"x"}}\t'),
    "agents of several ids": lambda: Script().user("Look", isSidechain=True, agentId="a1")
        .bot("One", isSidechain=True, agentId="a2", id="m1").bot("Two", isSidechain=True, id="m2")
        .bot("Three", agentId="a3", id="m3").bot("Four", isSidechain=True, agentId="", id="m4"),
    "sidechain last": lambda: Script().user("One").bot("Two")
        .bot("I look", isSidechain=True, agentId="a1", model="claude-s", parentUuid=None),
}  # fmt: skip
