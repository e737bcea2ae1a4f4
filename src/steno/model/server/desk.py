"""Decides what becomes of a request: a refusal, a count, a list, or what the mind answers."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

import msgspec

from steno.format.values import as_object
from steno.model.server.channel import HttpRequest
from steno.model.server.marks import Ids, Signer
from steno.model.server.minds import Asked, Failure, Item, Mind, Reply, Said
from steno.model.server.refusals import Refusal
from steno.model.server.rules import Known, refusal
from steno.model.server.stream import Message
from steno.model.server.usage import Meter, output_tokens

__all__ = ["HOST", "MAX_BODY", "MODELS", "Decision", "Desk", "Plain", "Received", "Settings"]

HOST: Final = "127.0.0.1"
MAX_BODY: Final = 32 << 20
"""The most bytes of a request."""
MODELS: Final = ("claude-opus-4-6", "claude-sonnet-4-6", "claude-haiku-4-5")
"""The models that are listed where none are given."""
_MESSAGES: Final = "/v1/messages"
_COUNT: Final = "/v1/messages/count_tokens"
_LIST: Final = "/v1/models"
_RELEASED: Final = "2026-01-01T00:00:00Z"
_NOT_JSON: Final = "The request body is not valid JSON: {}"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How a server behaves."""

    strict: bool = True
    """Refuse what the API refuses; otherwise only what cannot be understood."""
    signed: bool = True
    """Refuse thinking that neither the server signed nor the mind vouches for."""
    alternating: bool = False
    """Refuse two messages of one role in a row; the API itself joins them."""
    key: str = ""
    """The key that a client must show; any, or none, where this is empty."""
    seed: str = "steno"
    """What the names and signatures are made from."""
    port: int = 0
    window: int | None = None
    """The most tokens of a request."""
    models: tuple[str, ...] = ()
    """The models there are; every name is one where this is empty."""
    keep: int = 200
    """How many requests are kept to look at."""
    most: int = MAX_BODY
    """The most bytes of a request."""
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    """The clock that waits go by."""
    on_request: "Callable[[Received], None] | None" = None
    """Is told of each request when it has been answered."""


class Received(msgspec.Struct, kw_only=True):
    """A request, and what became of it."""

    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any] = {}
    request_id: str = ""
    status: int = 0
    refusal: Refusal | None = None
    sent: int = 0
    """How many bytes of the answer's body went out."""
    finished: bool = False
    """Whether the whole answer went out; a cut, or a client that left, ends it before."""


class Plain(msgspec.Struct, frozen=True):
    """An answer that is one JSON value."""

    body: dict[str, Any]


Decision = Plain | Message | Failure | Refusal


class Desk:
    """Where requests are read and answers are made ready; it sends nothing itself."""

    def __init__(self, mind: Mind, settings: Settings) -> None:
        self.mind = mind
        self.settings = settings
        self.requests: deque[Received] = deque(maxlen=settings.keep)
        self.refused: deque[Received] = deque(maxlen=settings.keep)
        self._ids = Ids(settings.seed)
        self._signer = Signer(settings.seed)
        self._meter = Meter()
        self._known = Known(self._genuine if settings.signed else None)
        self._asked = 0

    def receive(self, request: HttpRequest) -> Received:
        """Take a request down."""
        received = Received(
            method=request.method,
            path=request.path,
            headers=request.headers,
            request_id=self._ids.request(),
        )
        self.requests.append(received)
        return received

    def unread(self) -> Received:
        """Take down that a request came which could not be read."""
        received = Received(method="", path="", headers={}, request_id=self._ids.request())
        self.requests.append(received)
        return received

    def decide(self, request: HttpRequest, received: Received) -> Decision:
        """Return what is to be answered."""
        decision = self._decide(request, received)
        if isinstance(decision, Refusal):
            received.refusal = decision
            self.refused.append(received)
        return decision

    def _decide(self, request: HttpRequest, received: Received) -> Decision:
        if _stranger(request.headers.get("host", "")):
            return Failure(status=403, message="this server answers on loopback only")
        if _of_a_page(request.headers):
            return Failure(status=403, message="this server answers no web pages")
        if not self._may(request.headers):
            return Refusal("invalid x-api-key", 401)
        if request.path == _LIST or request.path.startswith(f"{_LIST}/"):
            return self._models(request)
        if request.path not in (_MESSAGES, _COUNT):
            return Failure(status=404)
        if request.method != "POST":
            return Failure(status=405)
        return self._read(request, received)

    def _may(self, headers: dict[str, str]) -> bool:
        key = self.settings.key
        shown = (headers.get("x-api-key"), headers.get("authorization"))
        return not key or shown[0] == key or shown[1] == f"Bearer {key}"

    def _models(self, request: HttpRequest) -> Decision:
        if request.method != "GET":
            return Failure(status=405)
        names = self.settings.models or MODELS
        wanted = request.path.removeprefix(_LIST).removeprefix("/")
        if wanted:
            found = not self.settings.models or wanted in names
            return Plain(_model(wanted)) if found else Refusal(f"model: {wanted}", 404)
        listed = [_model(name) for name in names]
        ends = {"first_id": names[0], "last_id": names[-1]}
        return Plain({"data": listed, "has_more": False, **ends})

    def _read(self, request: HttpRequest, received: Received) -> Decision:
        try:
            body = as_object(msgspec.json.decode(request.body))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return Refusal(_NOT_JSON.format(error))
        if body is None:
            return Refusal("Input should be a valid dictionary")
        received.body = body
        counts = request.path == _COUNT
        refused = self._refusal(body, request.headers, counts=counts)
        if refused is not None:
            return refused
        if counts:
            return Plain({"input_tokens": self._meter.count(body)})
        self._asked += 1
        answer = self.mind.answer(Asked(body, self._asked, request.headers))
        return answer if isinstance(answer, Failure) else self._message(answer, body, received)

    def _refusal(
        self, body: dict[str, Any], headers: dict[str, str], *, counts: bool
    ) -> Refusal | None:
        settings = self.settings
        if settings.strict:
            if not headers.get("anthropic-version"):
                return Refusal("anthropic-version: header is required")
            betas = frozenset(name.strip() for name in headers.get("anthropic-beta", "").split(","))
            found = refusal(
                body,
                betas=betas,
                counts=counts,
                known=self._known,
                alternating=settings.alternating,
            )
            if found is not None:
                return found
        model = body.get("model")
        if settings.models and model not in settings.models:
            return Refusal(f"model: {model}", 404)
        if settings.window is not None:
            size = self._meter.count(body)
            if size > settings.window:
                most = f"{size} tokens > {settings.window} maximum"
                return Refusal(f"prompt is too long: {most}")
        return None

    def _genuine(self, thinking: str, signature: str) -> str:
        verdict = self._signer.verdict(thinking, signature)
        if verdict != "genuine" and self.mind.vouches(thinking, signature):
            return "genuine"
        return verdict

    def _message(self, reply: Reply, body: dict[str, Any], received: Received) -> Message:
        hidden = (as_object(body.get("thinking")) or {}).get("display") == "omitted"
        content = _paired(self._named(item, hidden=hidden) for item in reply.content)
        blocks = [each.block for each in content if isinstance(each, Said)]
        calls = any(block.get("type") == "tool_use" for block in blocks)
        if calls and not any(str(block.get("type")).endswith("thinking") for block in blocks):
            self._known.unthinking(blocks)
        usage = self._meter.usage(body)
        usage["output_tokens"] = output_tokens(blocks)
        searches = sum(block.get("type") == "web_search_tool_result" for block in blocks)
        if searches:
            usage["server_tool_use"] = {"web_search_requests": searches}
        return Message(
            id=reply.id or self._ids.message(),
            model=reply.model or str(body.get("model", "")),
            content=content,
            stop_reason=reply.stop_reason or ("tool_use" if calls else "end_turn"),
            usage={**usage, **reply.usage},
            reply=reply,
            request_id=received.request_id,
        )

    def _named(self, item: Item, *, hidden: bool) -> Item:
        """Return an item with the name or the signature that it lacks."""
        if not isinstance(item, Said):
            return item
        block, pieces = item.block, item.pieces
        match block.get("type"):
            case "tool_use" if not block.get("id"):
                return Said({**block, "id": self._ids.call()}, pieces)
            case "server_tool_use" if not block.get("id"):
                return Said({**block, "id": self._ids.server_call()}, pieces)
            case "thinking" if not block.get("signature"):
                words = "" if hidden else str(block.get("thinking", ""))
                signature = self._signer.sign(words, self._ids.nonce())
                signed = {**block, "thinking": words, "signature": signature}
                return Said(signed, () if hidden else pieces)
            case _:
                return item


def _paired(items: Iterable[Item]) -> tuple[Item, ...]:
    """Return items in which a nameless result of the server's is about the call before it."""
    named: list[Item] = []
    call = ""
    for item in items:
        block = item.block if isinstance(item, Said) else {}
        if block.get("type") == "server_tool_use":
            call = str(block["id"])
        nameless = block.get("type") == "web_search_tool_result" and not block.get("tool_use_id")
        named.append(Said({**block, "tool_use_id": call}) if nameless else item)
    return tuple(named)


def _model(name: str) -> dict[str, Any]:
    return {
        "type": "model",
        "id": name,
        "display_name": name.replace("-", " ").title(),
        "created_at": _RELEASED,
        "lifecycle": "active",
    }


def _of_a_page(headers: dict[str, str]) -> bool:
    """Whether a page in a browser has sent it: programs name no origin, nor where they come from."""
    site = headers.get("sec-fetch-site", "none")
    return "origin" in headers or site not in ("none", "same-origin")


def _stranger(host: str) -> bool:
    """Whether a request was meant for another name: a page that had its name point here."""
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
    return name not in ("", HOST, "localhost")
