"""Turns: the prompt, the responses, the results, and what opens and closes them."""

from typing import Final, Self, TypedDict, Unpack

import msgspec
from tests.builders.blocks import UNSET, Answer, Json, text
from tests.builders.core import ZERO
from tests.builders.generations import Generation
from tests.builders.outcomes import Call, outcome
from tests.builders.requests import Requests
from tests.builders.shapes import Tokens, message, usage

from steno.format.encode import encode
from steno.format.tool_catalogue import SHELL, TEXT_EDITING_TOOLS

__all__ = ["Turns"]

_PER_TOKEN: Final = 4


class Prompted(TypedDict, total=False):
    """What `user()` may be told about where a prompt came from."""

    source: str
    origin: Json


class Responded(TypedDict, total=False):
    """What `assistant()` may be told about a response."""

    model: str
    stop: str | None
    output: int
    message_id: str
    aborted: bool


class _Response(msgspec.Struct):
    """A response while it streams in."""

    model: str
    message_id: str
    request_id: str
    request_ref: str
    stop: str | None
    tokens: Tokens
    blocks: int
    aborted: bool = False
    index: int = 0


class Turns(Requests):
    """The conversation."""

    _rewound = False
    _tools_named: tuple[str, ...] = ()

    def user(self, content: str | list[Json], **where: Unpack[Prompted]) -> Self:
        """Write a prompt and begin a turn; words or blocks."""
        uuid = self.ids.uuid()
        self.step(50 if self.depth else 2000)
        self._open(uuid, content)
        words = {"type": "user", "message": {"role": "user", "content": content}}
        body = {**words, "uuid": uuid, "timestamp": "", **self._prompt_fields(where)}
        self.link(body, **self._prompted())
        if self._rewound and self.gen.latest:
            self.last_prompt(None, leaf=ZERO, explicit=True)
        self._rewound = False
        if self.compacted:
            self.compacted = False
            self.reset_requests()
        if self.full and not self._announced:
            self.preamble()
            self._announced = True
            self._snapshot_due = self.gen.latest
        return self

    def assistant(self, *parts: str | Json | Answer, **how: Unpack[Responded]) -> Self:
        """Write one response, a line a block.

        An `answer()` among the blocks is written at its place, before the blocks behind it, as
        the newest client does when a tool is quicker than the stream.
        """
        blocks = [part for part in parts if not isinstance(part, Answer)]
        self.step(900)
        self._before_response(blocks)
        named = [self._named(block) for block in blocks]
        response = self._response(named, how)
        self.calls = []
        ready = iter(named)
        for part in parts:
            if isinstance(part, Answer):
                self._answer(part)
            else:
                self._line(response, next(ready))
        return self

    def result(
        self,
        content: str | list[Json] | None = None,
        *,
        of: int | None = None,
        error: bool = False,
        detail: object = UNSET,
    ) -> Self:
        """Answer a call: the first that waits, or the one at place `of` in its response."""
        self._answer(Answer(content=content, of=of, error=error, detail=detail))
        return self

    def results(self, *contents: str | list[Json] | None) -> Self:
        """Answer all calls in order."""
        for content in contents:
            self.result(content)
        return self

    def turn(self, prompt: str, *parts: str | Json) -> Self:
        """Write a whole turn without tools."""
        return self.user(prompt).assistant(*parts).done()

    def done(self, *, pending_agents: int = 0) -> Self:
        """End the turn; a client that died writes none of this."""
        if not self.turn_open:
            return self
        self.turn_open = False
        if not self.full or not self.gen.tail or self.depth:
            return self
        self._second_snapshot()
        if self.terminal:
            self.turn_duration(pending_agents=pending_agents)
        return self._states()

    def exit(self) -> Self:
        """End the session in good order."""
        self.done()
        if self.full and self.gen.latest:
            self.cost_state().last_prompt().tools_used(*self._tools_named)
        return self

    def rewind(self, to: int | str) -> Self:
        """Go back, so that the next prompt starts a branch.

        `to` is the number of the prompt to be said anew (from 0), a `mark`, or the uuid of the
        record to go on from.
        """
        self.done()
        if isinstance(to, int):
            prompt = self.prompts[to]
            found = next(record for record in self._records if record.get("uuid") == prompt)
            self.tip = found["parentUuid"]
        else:
            self.tip = self._marks.get(to, to)
        self._rewound = True
        return self

    def _open(self, uuid: str, content: str | list[Json]) -> None:
        self.done()
        first = not self.prompts
        words = content if isinstance(content, str) else _words(content)
        self.prompt_uuid = uuid
        self.prompt_text = words
        self.turn_open = True
        self.turn_began = self.clock.ms
        self.turns += 1
        if self.depth:
            return
        self.prompt_id = self.ids.uuid("prompt")
        self.prompts.append(uuid)
        if self.terminal:
            self._remember(words)
        if not self.full:
            return
        if not self.terminal:
            if self.gen.tail:
                self.queue_operation("enqueue", words)
            if self.gen.version != "1.0.128":
                self.queue_operation("dequeue")
            return
        if first and self.gen.tail:
            self.mode().permission_mode()
            if self.gen.latest:
                self.atis_latch()
        if self._keeps_files():
            self.snapshot(uuid, backups=self._backups())

    def _remember(self, words: str) -> None:
        entry: Json = {"display": words, "pastedContents": {}, "timestamp": self.clock.ms}
        named = {} if self.gen.version == "1.0.128" else {"sessionId": self.session_id}
        self.history.append({**entry, "project": self.cwd, **named})

    def _prompt_fields(self, where: Prompted) -> Json:
        if self.depth:
            return {}
        gen = self.gen
        if not gen.tail:
            return _old_prompt_fields(gen, self.permission, terminal=self.terminal)
        fields: Json = {"permissionMode": self.permission}
        origin = where.get("origin", {"kind": "human"} if self.terminal else {})
        if origin:
            fields["origin"] = origin
        fields["promptSource"] = where.get("source", "typed" if self.terminal else "sdk")
        if gen.latest:
            kind = str(origin.get("kind", "sdk")).replace("-", "_")
            fields["turnOrigin"] = kind
            spoken = len(self.prompts) if self.terminal else 0
            fields["turnPosition"] = {"promptIndex": spoken, "turnIndex": self.turns}
        return fields

    def _named(self, block: str | Json) -> Json:
        """Give a block what only the API could give it: an id, a signature."""
        if isinstance(block, str):
            return text(block)
        if block.get("type") == "tool_use" and not block["id"]:
            return {**block, "id": self.ids.tool()}
        if block.get("type") == "server_tool_use" and not block["id"]:
            return {**block, "id": "srv" + self.ids.tool()}
        if block.get("type") == "thinking" and not block["signature"]:
            return {**block, "signature": self.ids.signature()}
        return block

    def _before_response(self, blocks: list[str | Json]) -> None:
        self.request_ref = "" if not self.full else self.request_ref
        if not self.full or not self.gen.latest:
            return
        if self.spent:
            self._second_snapshot()
        self.api_request()
        names = [str(b["name"]) for b in blocks if not isinstance(b, str) and "name" in b]
        fresh = [name for name in dict.fromkeys(names) if name not in self._tools_named]
        if fresh and not self.depth:
            self._tools_named = (*self._tools_named, *fresh)
            self.tools_used(*self._tools_named)

    def _response(self, blocks: list[Json], how: Responded) -> _Response:
        size = sum(len(encode(block)) for block in blocks)
        thought = sum(len(b["thinking"]) for b in blocks if b["type"] == "thinking")
        tokens = Tokens(
            fresh=4 + size % 9,
            written=300 + size // 3 + self.unwritten,
            cached=self.context,
            output=how.get("output", size // _PER_TOKEN + 12),
            thought=thought // _PER_TOKEN,
        )
        self.unwritten = 0
        self.context += tokens.written + tokens.output
        called = any(block["type"] == "tool_use" for block in blocks)
        model = how.get("model", self.model)
        self.spent.append((model, tokens))
        return _Response(
            model=model,
            message_id=how.get("message_id", "") or self.ids.message(),
            request_id=self.ids.request(),
            request_ref=self.request_ref or self.ids.uuid("request"),
            stop=how.get("stop", "tool_use" if called else "end_turn"),
            tokens=tokens,
            blocks=len(blocks),
            aborted=how.get("aborted", False),
        )

    def _line(self, response: _Response, block: Json) -> None:
        gen = self.gen
        last = response.index == response.blocks - 1
        final = gen.final == "all" or (gen.final == "last" and last)
        name = (response.model, response.message_id)
        said = message(gen, name, block, response.stop if final else None)
        said["usage"] = usage(gen, response.tokens, final=final)
        if gen.tail:
            said["stop_details"] = None
        body: Json = {"message": said, **self._line_fields(response, block)}
        agent = {"attributionAgent": self.agent_type} if self.agent_type and gen.tail else {}
        body |= {**agent, "type": "assistant", "uuid": "", "timestamp": ""}
        if gen.latest:
            aborted = {"isAbortedMidStream": True} if response.aborted else {}
            body |= {"effort": "medium", "perTurnEffort": "medium", "madeBy": "model", **aborted}
        descent = self._descent() if block["type"] in {"text", "tool_use"} else {}
        uuid = self.link(body, **descent)
        response.index += 1
        if block["type"] == "tool_use":
            self.calls.append(Call(block["id"], block["name"], block["input"], uuid))

    def _line_fields(self, response: _Response, block: Json) -> Json:
        if not self.gen.latest:
            return {"requestId": response.request_id}
        first: Json = {}
        if block["type"] == "thinking":
            first = {"thinkingDurationMs": 640, "thinkingDisplay": "omitted"}
        elif block["type"] == "tool_use":
            first = {"toolInputStreamMs": 3}
        return {
            **first,
            "apiBlockIndex": response.index,
            "requestId": response.request_id,
            "requestRef": response.request_ref,
            "requestedModel": response.model,
            "promptCacheRequested": "5m",
        }

    def _answer(self, given: Answer) -> None:
        waiting = [call for call in self.calls if not call.answered]
        call = waiting[0] if given.of is None else self.calls[given.of]
        call.answered = True
        self.step(300 if given.ms is None else given.ms)
        if self.full and call.name in TEXT_EDITING_TOOLS and not self.depth:
            self._track(call.line, str(call.input.get("file_path", "")))
        made = outcome(self.gen, call, given, self.room)
        if self.gen.early_slug:
            self.slug = self.slug or self.ids.words()
        self.write_result(call, made.block, made.detail)

    def write_result(self, call: Call, block: Json, detail: object) -> None:
        """Write the record of a result."""
        gen = self.gen
        quiet = self.depth > 0 and gen.progress
        told = {} if quiet or detail is UNSET else {"toolUseResult": detail}
        said = {"type": "user", "message": {"role": "user", "content": [block]}}
        body: Json = {**said, "uuid": "", "timestamp": "", **told}
        if gen.latest and call.name == SHELL:
            body["sandboxed"] = False
        if gen.tree:
            body["sourceToolAssistantUUID"] = call.line
        if gen.latest:
            decision = {"decision": "accept", "source": "config", "reasonType": "rule"}
            body["permissionDecision"] = {**decision, "ruleSource": "userSettings"}
        head = {**self._prompted(), **self._descent()}
        self.link(body, parent=call.line if gen.tree else self.tip, **head)
        self.answered = call

    def _second_snapshot(self) -> None:
        if self._snapshot_due and self.spent:
            self._snapshot_due = False
            self.prompt_snapshot(tools=True)

    def _states(self) -> Self:
        self.last_prompt()
        if self.terminal:
            self.mode().permission_mode()
        return self.atis_latch() if self.gen.latest else self


def _words(blocks: list[Json]) -> str:
    return " ".join(str(b["text"]) for b in blocks if b.get("type") == "text")


def _old_prompt_fields(gen: Generation, permission: str, *, terminal: bool) -> Json:
    fields: Json = {}
    if terminal and gen.version == "1.0.128":
        fields["thinkingMetadata"] = {"level": "none", "disabled": False, "triggers": []}
    elif terminal and gen.version == "2.0.76":
        fields["thinkingMetadata"] = {"level": "high", "disabled": False, "triggers": []}
        fields["todos"] = []
    elif terminal and gen.version == "2.1.42":
        fields["thinkingMetadata"] = {"maxThinkingTokens": 31_999}
        fields["todos"] = []
    if gen.order >= (2, 1, 29):
        fields["permissionMode"] = permission
    return fields
