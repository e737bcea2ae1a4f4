"""Sub-agents in the three places the real client has kept them, and their notifications."""

import copy
from collections.abc import Callable
from typing import Self

import msgspec
from tests.builders.asides import Asides
from tests.builders.blocks import Json, text
from tests.builders.core import Options
from tests.builders.outcomes import Call
from tests.builders.shapes import usage

__all__ = ["Agents", "Transcript"]


class Transcript(msgspec.Struct, frozen=True):
    """A sub-agent's own file."""

    agent_id: str
    records: list[Json]
    meta: Json | None = None


class _Finished(msgspec.Struct, frozen=True):
    """A sub-agent that is done, and what it leaves behind."""

    call: Call
    agent_id: str
    report: str
    tokens: int
    calls: int
    ms: int
    usage: Json


class Agents(Asides):
    """Work handed to others."""

    _pending: tuple[_Finished, ...] = ()

    def __init__(self, version: str, options: Options) -> None:
        super().__init__(version, options)
        self.transcripts: list[Transcript] = []

    def agent(self, work: Callable[[Self], object], *, of: int | None = None, background: bool = False) -> Self:
        """Answer a `Task` or `Agent` call by a sub-agent whose transcript `work` builds.

        `work` gets a builder of the same kind, with the prompt already said. A sub-agent in the
        background answers at once and reports later, by `notify()`.
        """
        waiting = [call for call in self.calls if not call.answered]
        call = waiting[0] if of is None else self.calls[of]
        call.answered = True
        child = self._child(call)
        began, since = self.clock.ms, len(child.taken())
        if background:
            self._write_launch(call, child.agent_id)
        child.user(str(call.input.get("prompt", "")))
        work(child)
        # What a sub-agent spent is the session's bill, too.
        self.spent.extend(child.spent)
        finished = _finish(call, child, since, self.clock.ms - began)
        if child.agent_id:
            self._keep(child, call)
        if background:
            self._pending = (*self._pending, finished)
        else:
            self._write_report(finished)
        return self

    def notify(self, *, absorbed: bool = False) -> Self:
        """Let the first sub-agent in the background report: between turns, or inside one."""
        first, *rest = self._pending
        self._pending = tuple(rest)
        words = self._notification(first)
        self.queue_operation("enqueue", words)
        kind = "task-notification"
        origin: Json = {"kind": kind, "producer": "session-task"} if self.gen.latest else {}
        if absorbed:
            return self._take_up(words, mode=kind, origin=origin or {"kind": kind})
        self.done(pending_agents=len(self._pending) + 1 if self.gen.latest else 0)
        self.queue_operation("dequeue")
        remembered, prompts = len(self.history), len(self.prompts)
        full, self.full = self.full, False
        self.user(words, source="system", origin=origin or {"kind": kind})
        self.full = full
        del self.history[remembered:], self.prompts[prompts:]
        if self.gen.latest:
            self._records[-1] = _skipping(self._records[-1])
        return self

    def warmup(self) -> Self:
        """Write the idle sub-agents that 2.0.x starts with every session."""
        for model in (self.gen.small_model, self.gen.model):
            child = self._child(Call(id="", name="Task", input={}, line=""))
            child.user("Warmup").assistant("Ready.", model=model)
            self.transcripts.append(Transcript(child.agent_id, child.taken()))
        return self

    def taken(self) -> list[Json]:
        """Return the records written so far, to be kept in a file of their own."""
        return self._records

    def _child(self, call: Call) -> Self:
        child = copy.copy(self)
        child.depth = self.depth + 1
        child.tip = None
        child.calls, child.answered = [], None
        child.prompts, child.turns, child.turn_open = [], 0, False
        child.context, child.spent = 9_000, []
        child.agent_type = str(call.input.get("subagent_type", "general-purpose"))
        child.reset_requests()
        if self.gen.layout != "inline":
            child.replace_records()
            child.agent_id = "a" + self.ids.hexa("agent", self.gen.agent_digits - 1)
        return child

    def _keep(self, child: Self, call: Call) -> None:
        meta: Json | None = None
        if self.gen.tail:
            meta = {
                "agentType": child.agent_type,
                **({"isBuiltIn": True, "launchedWithDefaults": True} if self.gen.latest else {}),
                "description": call.input.get("description", ""),
                "toolUseId": call.id,
                "spawnDepth": child.depth,
            }
        if meta and self.gen.latest:
            meta |= {"requestShape": "background", "requestNonInteractive": True}
            meta |= {"pickedEffortModel": self.model, "finished": True}
        self.transcripts.append(Transcript(child.agent_id, child.taken(), meta))

    def _write_launch(self, call: Call, agent_id: str) -> None:
        self.step(120)
        words = f"Async agent launched successfully.\nagentId: {agent_id}"
        output = f"/run/user/1000/{self.session_id}/tasks/{agent_id}.output"
        detail: Json = {
            "isAsync": True,
            "status": "async_launched",
            "agentId": agent_id,
            "description": call.input.get("description", ""),
            **({"resolvedModel": self.model} if self.gen.tail else {}),
            "prompt": call.input.get("prompt", ""),
            "outputFile": output,
        }
        if self.gen.tail:
            detail["canReadOutputFile"] = True
        if self.gen.latest:
            detail["canContinueAgent"] = True
        self.write_result(call, _result(call, [text(words)]), detail)

    def _write_report(self, done: _Finished) -> None:
        self.step(60)
        content = [text(done.report)]
        counts = {
            "totalDurationMs": done.ms,
            "totalTokens": done.tokens,
            "totalToolUseCount": done.calls,
            "usage": done.usage,
        }
        start: Json = {}
        shown = list(content)
        if self.gen.layout != "inline":
            prompt = done.call.input.get("prompt", "")
            start = {"status": "completed", "prompt": prompt, "agentId": done.agent_id}
            shown.append(text(f"agentId: {done.agent_id}"))
        if self.gen.early_slug:
            self.slug = self.slug or self.ids.words()
        detail = {**start, "content": content, **counts}
        self.write_result(done.call, _result(done.call, shown), detail)

    def _notification(self, done: _Finished) -> str:
        title = done.call.input.get("description", "")
        return "\n".join(
            (
                "<task-notification>",
                f"<task-id>{done.agent_id}</task-id>",
                *([f"<tool-use-id>{done.call.id}</tool-use-id>"] if self.gen.tail else []),
                "<status>completed</status>",
                f'<summary>Agent "{title}" finished</summary>',
                f"<result>{done.report}</result>",
                "</task-notification>",
            )
        )


def _finish(call: Call, child: Agents, since: int, ms: int) -> _Finished:
    report, calls = "", 0
    for record in child.taken()[since:]:
        if record["type"] != "assistant":
            continue
        block = record["message"]["content"][0]
        report = str(block["text"]) if block["type"] == "text" else report
        calls += block["type"] == "tool_use"
    last = child.spent[-1][1]
    total = last.fresh + last.written + last.cached + last.output
    spent = usage(child.gen, last, final=True)
    return _Finished(call, child.agent_id, report, total, calls, ms, spent)


def _result(call: Call, content: list[Json]) -> Json:
    return {"tool_use_id": call.id, "type": "tool_result", "content": content}


def _skipping(record: Json) -> Json:
    """Mark a prompt that came without attachments of its own."""
    fields: Json = {}
    for key, value in record.items():
        if key == "userType":
            fields["queueSkipAttachments"] = True
        fields[key] = value
    return fields
