"""The requests themselves, as the newest client keeps them: shape, blobs, delta-coded messages."""

import hashlib
from typing import Final, Self

from tests.builders.attach import Attachments
from tests.builders.blocks import Json

from steno.format.encode import encode

__all__ = ["Requests"]

_TOOLS: Final = ("Agent", "Bash", "Edit", "Glob", "Grep", "Read", "Write")
_CACHED: Final = {"type": "ephemeral"}


class Requests(Attachments):
    """`api-request-shape`, `api-request-blob`, `api-request`."""

    request_ref = ""
    _shape = ""
    _sent: tuple[str, ...] = ()
    _announced = False
    _snapshot_due = False

    def api_request(self) -> Self:
        """Write the next request; the first one brings its shape and its first messages."""
        first = not self._sent
        if first:
            self._shape = self._write_shape()
            tail = [self._write_blob(message) for message in self._opening()]
        else:
            tail = [self.ids.hexa("blob", 64), self.ids.hexa("blob", 64)]
        base = {} if first else {"base": self.request_ref}
        self.request_ref = self.ids.uuid("request")
        last = len(self._sent) + len(tail) - 1
        path = [["system", 0], ["system", 1], ["messages", last, "content", 0]]
        self.side(
            {
                **self._request_head("api-request"),
                "id": self.request_ref,
                "timestamp": self.clock.stamp(),
                "version": self.version,
                "querySource": self._source(),
                "shapeHash": self._shape,
                "params": self._params(),
                **base,
                "keep": len(self._sent),
                "tail": tail,
                "cacheControl": [{"path": each, "value": _CACHED} for each in path],
                "requestDigest": self.ids.hexa("request-digest", 64),
            }
        )
        self._sent = (*self._sent, *tail)
        return self

    def reset_requests(self) -> None:
        """Forget what was sent: a new conversation begins."""
        self.request_ref, self._shape, self._sent = "", "", ()
        self._announced, self._snapshot_due = False, False

    def _opening(self) -> tuple[Json, Json]:
        user = {"role": "user", "content": [{"type": "text", "text": self.prompt_text}]}
        words = {"type": "text", "text": f"It is {self.clock.date}."}
        effort = {"output_config": {"effort": "medium"}}
        return user, {"role": "system", "content": [words], **effort}

    def _write_shape(self) -> str:
        schema: Json = {"type": "object", "properties": {}}
        tools = [{"name": n, "description": n, "input_schema": schema} for n in _TOOLS]
        system = [{"type": "text", "text": "You help with software, in this folder."}]
        shape: Json = {"system": system, "tools": tools}
        digest = hashlib.sha256(encode(shape)).hexdigest()
        head = self._request_head("api-request-shape")
        made = {"timestamp": self.clock.stamp(), "version": self.version}
        self.side({**head, "shapeHash": digest, **made, "shape": shape})
        return digest

    def _write_blob(self, message: Json) -> str:
        digest = hashlib.sha256(encode(message)).hexdigest()
        head = self._request_head("api-request-blob")
        self.side({**head, "hash": digest, "message": message})
        return digest

    def _request_head(self, kind: str) -> Json:
        agent = {"agentId": self.agent_id} if self.agent_id else {}
        return {"type": kind, "sessionId": self.session_id, **agent}

    def _source(self) -> str:
        if self.agent_id:
            return f"agent:builtin:{self.agent_type}"
        return "repl_main_thread" if self.terminal else "sdk"

    def _params(self) -> Json:
        return {
            "model": self.model,
            "betas": [],
            "max_tokens": 128_000,
            "thinking": {"type": "adaptive", "display": "omitted"},
            "context_management": {"edits": []},
            "output_config": {"effort": "medium"},
        }
