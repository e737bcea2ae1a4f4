"""Handles requests: returns a refusal, a token count, a model list, or the reply of a responder.

IDs and thinking signatures are derived from a seed. Token counts are computed from sizes with a simulated prompt cache:
plausible, not those of a real model, and reproducible.
"""

import asyncio
import hashlib
import hmac
from base64 import b64decode, b64encode
from binascii import Error
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any, Final, Literal

import msgspec

from steno.format.lenient_json import as_list, as_object
from steno.llm.messages_api import COUNT_PATH, MESSAGES_PATH
from steno.llm.testserver.http_connection import HttpRequest
from steno.llm.testserver.request_validator import ThinkingHistory, validate_request
from steno.llm.testserver.responders import (
    ErrorReply,
    Refusal,
    Reply,
    ReplyBlock,
    ReplyItem,
    ReplyMessage,
    Responder,
    ResponderRequest,
)
from steno.session.resume.api_rules import read_header

_ID_LETTERS: Final = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_ID_LENGTH: Final = 22
_NONCE_LENGTH: Final = 12
_SEAL_LENGTH: Final = 12
SignatureVerdict = Literal["genuine", "modified", "foreign"]


class IdGenerator:
    """Generates IDs in the API's format, reproducible for a seed."""

    def __init__(self, seed: str = "") -> None:
        self._seed = seed
        self._counts: dict[str, int] = {}

    def message(self) -> str:
        """Return the next message ID."""
        return f"msg_01{self._next_id('message')}"

    def call(self) -> str:
        """Return the next tool call ID."""
        return f"toolu_01{self._next_id('call')}"

    def server_call(self) -> str:
        """Return the next ID of a server tool call."""
        return f"srvtoolu_01{self._next_id('server call')}"

    def request(self) -> str:
        """Return the next request ID."""
        return f"req_011C{self._next_id('request')}"

    def nonce(self) -> bytes:
        """Return the next nonce for a signature."""
        return self._digest("nonce")[:_NONCE_LENGTH]

    def _next_id(self, kind: str) -> str:
        number = int.from_bytes(self._digest(kind), "big")
        letters: list[str] = []
        for _ in range(_ID_LENGTH):
            number, remainder = divmod(number, len(_ID_LETTERS))
            letters.append(_ID_LETTERS[remainder])
        return "".join(letters)

    def _digest(self, kind: str) -> bytes:
        count = self._counts[kind] = self._counts.get(kind, 0) + 1
        return hashlib.sha256(f"{self._seed}:{kind}:{count}".encode()).digest()


class ThinkingSigner:
    """Signs thinking and verifies its own signatures without storing them."""

    def __init__(self, seed: str = "") -> None:
        self._key = hashlib.sha256(f"{seed}:signature".encode()).digest()

    def sign(self, thinking: str, nonce: bytes) -> str:
        """Return the signature of a thinking text."""
        return b64encode(nonce + self._seal(nonce) + self._mac(nonce, thinking)).decode("ascii")

    def verify(self, thinking: str, signature: str) -> SignatureVerdict:
        """Return whether a signature is genuine, belongs to other thinking, or is foreign."""
        try:
            signature_bytes = b64decode(signature, validate=True)
        except (Error, ValueError):
            return "foreign"
        nonce, seal, mac = (
            signature_bytes[:_NONCE_LENGTH],
            signature_bytes[_NONCE_LENGTH:][:_SEAL_LENGTH],
            signature_bytes[_NONCE_LENGTH + _SEAL_LENGTH :],
        )
        if not hmac.compare_digest(seal, self._seal(nonce)):
            return "foreign"
        matches = hmac.compare_digest(mac, self._mac(nonce, thinking))
        return "genuine" if matches else "modified"

    def _seal(self, nonce: bytes) -> bytes:
        return hmac.digest(self._key, b"nonce" + nonce, "sha256")[:_SEAL_LENGTH]

    def _mac(self, nonce: bytes, thinking: str) -> bytes:
        return hmac.digest(self._key, nonce + thinking.encode("utf-8", "surrogatepass"), "sha256")


_BYTES_PER_TOKEN: Final = 4
_PIXELS_PER_TOKEN: Final = 750
_TOKENS_PER_DOCUMENT: Final = 1_500
_MAX_PREFIXES: Final = 4_096
_DIGEST_SEED: Final = b"steno"


class TokenMeter:
    """Counts tokens and simulates the prompt cache."""

    def __init__(self) -> None:
        self._cached_prefixes: dict[bytes, None] = {}

    def usage(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the usage at the start of a response."""
        total = read = written = 0
        is_hourly = False
        digest = _DIGEST_SEED
        for block, size in _request_blocks(body):
            total += size
            digest = _extend_digest(digest, block)
            if digest in self._cached_prefixes:
                read = total
            cache_control = as_object(block.get("cache_control"))
            if cache_control is not None:
                written = total
                is_hourly = cache_control.get("ttl") == "1h"
                self._remember(digest)
        created = max(0, written - read)
        cache_creation = {"ephemeral_5m_input_tokens": 0 if is_hourly else created}
        cache_creation["ephemeral_1h_input_tokens"] = created if is_hourly else 0
        return {
            "input_tokens": max(1, total - read - created),
            "cache_creation_input_tokens": created,
            "cache_read_input_tokens": read,
            "cache_creation": cache_creation,
            "output_tokens": 1,
            "service_tier": "standard",
        }

    def _remember(self, digest: bytes) -> None:
        self._cached_prefixes.pop(digest, None)
        self._cached_prefixes[digest] = None
        if len(self._cached_prefixes) > _MAX_PREFIXES:
            self._cached_prefixes.pop(next(iter(self._cached_prefixes)))

    @staticmethod
    def count(body: dict[str, Any]) -> int:
        """Return the number of input tokens of a request."""
        return max(1, sum(size for _, size in _request_blocks(body)))


def output_tokens(content: list[dict[str, Any]]) -> int:
    """Return the number of output tokens of a response; never zero."""
    return 3 + sum(_count_tokens(block) for block in content)


def _request_blocks(body: dict[str, Any]) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield the blocks of a request in the order of the API, with their tokens."""
    for tool in _block_list(body.get("tools")):
        yield tool, _count_tokens(tool)
    for block in _block_list(body.get("system")):
        yield block, _count_tokens(block)
    for message in _block_list(body.get("messages")):
        role = str(message.get("role"))
        for block in _block_list(message.get("content")):
            yield {"role": role, **block}, _count_tokens(block) + 1


def _block_list(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    return [as_object(item) or {} for item in as_list(value) or ()]


def _count_tokens(block: dict[str, Any]) -> int:
    source = as_object(block.get("source"))
    data = source.get("data") if source else None
    if isinstance(data, str) and block.get("type") == "image":
        header = read_header(data)
        return header.width * header.height // _PIXELS_PER_TOKEN + 1 if header else 1
    if isinstance(data, str) and block.get("type") == "document":
        return _TOKENS_PER_DOCUMENT
    inner = as_list(block.get("content"))
    if inner is not None:
        return sum(_count_tokens(as_object(item) or {}) for item in inner) + _BYTES_PER_TOKEN
    return len(_encode_block(block)) // _BYTES_PER_TOKEN + 1


def _extend_digest(digest: bytes, block: dict[str, Any]) -> bytes:
    """Return the digest of a prefix extended by one block."""
    return hashlib.blake2b(digest + _encode_block(block), digest_size=16).digest()


def _encode_block(block: dict[str, Any]) -> bytes:
    """Return a block as bytes, without cache control."""
    return msgspec.json.encode({key: value for key, value in block.items() if key != "cache_control"})


HOST: Final = "127.0.0.1"
MAX_BODY_BYTES: Final = 32 << 20
"""Maximum bytes of a request."""
DEFAULT_MODELS: Final = ("claude-opus-4-6", "claude-sonnet-4-6", "claude-haiku-4-5")
"""The models listed by default."""
_MODELS_PATH: Final = "/v1/models"
_RELEASED: Final = "2026-01-01T00:00:00Z"
_NOT_JSON: Final = "The request body is not valid JSON: {}"


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a server."""

    strict: bool = True
    """Whether to apply all rules of the API; otherwise only invalid requests are refused."""
    signed: bool = True
    """Whether to refuse thinking that neither the server signed nor the responder accepts."""
    alternating: bool = False
    """Whether to refuse consecutive messages of one role, which the API joins."""
    key: str = ""
    """The API key that clients must send; empty accepts any or none."""
    seed: str = "steno"
    """Seed for IDs and signatures."""
    port: int = 0
    window: int | None = None
    """Context window in tokens."""
    models: tuple[str, ...] = ()
    """The available models; empty accepts every name."""
    keep: int = 200
    """Number of requests kept for inspection."""
    most: int = MAX_BODY_BYTES
    """Maximum bytes of a request."""
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    """The sleep function."""
    on_request: "Callable[[ReceivedRequest], None] | None" = None
    """Called after each request has been answered."""


class ReceivedRequest(msgspec.Struct, kw_only=True):
    """A request and its outcome."""

    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any] = {}
    request_id: str = ""
    status: int = 0
    refusal: Refusal | None = None
    sent: int = 0
    """Body bytes of the response that were sent."""
    finished: bool = False
    """Whether the whole response was sent; False after a cut or a disconnect."""


class JsonAnswer(msgspec.Struct, frozen=True):
    """A response with one JSON value."""

    body: dict[str, Any]


HandlerResult = JsonAnswer | ReplyMessage | ErrorReply | Refusal


class RequestHandler:
    """Decides on the response to each request; sends nothing itself."""

    def __init__(self, responder: Responder, settings: ServerSettings) -> None:
        self.responder = responder
        self.settings = settings
        self.requests: deque[ReceivedRequest] = deque(maxlen=settings.keep)
        self.refused: deque[ReceivedRequest] = deque(maxlen=settings.keep)
        self._ids = IdGenerator(settings.seed)
        self._signer = ThinkingSigner(settings.seed)
        self._meter = TokenMeter()
        self._thinking_history = ThinkingHistory(self._verify_thinking if settings.signed else None)
        self._request_count = 0

    def record_request(self, request: HttpRequest) -> ReceivedRequest:
        """Record a request."""
        received = ReceivedRequest(
            method=request.method, path=request.path, headers=request.headers, request_id=self._ids.request()
        )
        self.requests.append(received)
        return received

    def record_unreadable(self) -> ReceivedRequest:
        """Record a request that could not be read."""
        received = ReceivedRequest(method="", path="", headers={}, request_id=self._ids.request())
        self.requests.append(received)
        return received

    def handle(self, request: HttpRequest, received: ReceivedRequest) -> HandlerResult:
        """Return the response to a request."""
        decision = self._handle(request, received)
        if isinstance(decision, Refusal):
            received.refusal = decision
            self.refused.append(received)
        return decision

    def _handle(self, request: HttpRequest, received: ReceivedRequest) -> HandlerResult:
        if _is_foreign_host(request.headers.get("host", "")):
            return ErrorReply(status=403, message="this server only accepts requests on loopback")
        if _is_from_browser(request.headers):
            return ErrorReply(status=403, message="this server does not accept requests from web pages")
        if not self._is_authorized(request.headers):
            return Refusal("invalid x-api-key", 401)
        if request.path == _MODELS_PATH or request.path.startswith(f"{_MODELS_PATH}/"):
            return self._list_models(request)
        if request.path not in (MESSAGES_PATH, COUNT_PATH):
            return ErrorReply(status=404)
        if request.method != "POST":
            return ErrorReply(status=405)
        return self._read_body(request, received)

    def _is_authorized(self, headers: dict[str, str]) -> bool:
        key = self.settings.key
        presented = (headers.get("x-api-key"), headers.get("authorization"))
        return not key or presented[0] == key or presented[1] == f"Bearer {key}"

    def _list_models(self, request: HttpRequest) -> HandlerResult:
        if request.method != "GET":
            return ErrorReply(status=405)
        names = self.settings.models or DEFAULT_MODELS
        model_id = request.path.removeprefix(_MODELS_PATH).removeprefix("/")
        if model_id:
            is_known = not self.settings.models or model_id in names
            return JsonAnswer(_model_info(model_id)) if is_known else Refusal(f"model: {model_id}", 404)
        models = [_model_info(name) for name in names]
        id_range = {"first_id": names[0], "last_id": names[-1]}
        return JsonAnswer({"data": models, "has_more": False, **id_range})

    def _read_body(self, request: HttpRequest, received: ReceivedRequest) -> HandlerResult:
        try:
            body = as_object(msgspec.json.decode(request.body))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return Refusal(_NOT_JSON.format(error))
        if body is None:
            return Refusal("Input should be a valid dictionary")
        received.body = body
        counts = request.path == COUNT_PATH
        validation_error = self._validate(body, request.headers, counts=counts)
        if validation_error is not None:
            return validation_error
        if counts:
            return JsonAnswer({"input_tokens": self._meter.count(body)})
        self._request_count += 1
        answer = self.responder.answer(ResponderRequest(body, self._request_count, request.headers))
        return answer if isinstance(answer, ErrorReply) else self._build_message(answer, body, received)

    def _validate(self, body: dict[str, Any], headers: dict[str, str], *, counts: bool) -> Refusal | None:
        settings = self.settings
        if settings.strict:
            if not headers.get("anthropic-version"):
                return Refusal("anthropic-version: header is required")
            betas = frozenset(name.strip() for name in headers.get("anthropic-beta", "").split(","))
            problem = validate_request(
                body, betas=betas, count_only=counts, history=self._thinking_history, alternating=settings.alternating
            )
            if problem is not None:
                return problem
        model = body.get("model")
        if settings.models and model not in settings.models:
            return Refusal(f"model: {model}", 404)
        if settings.window is not None:
            size = self._meter.count(body)
            if size > settings.window:
                limit = f"{size} tokens > {settings.window} maximum"
                return Refusal(f"prompt is too long: {limit}")
        return None

    def _verify_thinking(self, thinking: str, signature: str) -> str:
        verdict = self._signer.verify(thinking, signature)
        if verdict != "genuine" and self.responder.accepts_thinking(thinking, signature):
            return "genuine"
        return verdict

    def _build_message(self, reply: Reply, body: dict[str, Any], received: ReceivedRequest) -> ReplyMessage:
        omit_thinking = (as_object(body.get("thinking")) or {}).get("display") == "omitted"
        content = _pair_server_results(self._with_ids(item, omit_thinking=omit_thinking) for item in reply.content)
        blocks = [reply_item.block for reply_item in content if isinstance(reply_item, ReplyBlock)]
        has_tool_calls = any(block.get("type") == "tool_use" for block in blocks)
        if has_tool_calls and not any(str(block.get("type")).endswith("thinking") for block in blocks):
            self._thinking_history.record_without_thinking(blocks)
        usage = self._meter.usage(body)
        usage["output_tokens"] = output_tokens(blocks)
        search_count = sum(block.get("type") == "web_search_tool_result" for block in blocks)
        if search_count:
            usage["server_tool_use"] = {"web_search_requests": search_count}
        return ReplyMessage(
            id=reply.id or self._ids.message(),
            model=reply.model or str(body.get("model", "")),
            content=content,
            stop_reason=reply.stop_reason or ("tool_use" if has_tool_calls else "end_turn"),
            usage={**usage, **reply.usage},
            reply=reply,
            request_id=received.request_id,
        )

    def _with_ids(self, item: ReplyItem, *, omit_thinking: bool) -> ReplyItem:
        if not isinstance(item, ReplyBlock):
            return item
        block, pieces = item.block, item.pieces
        match block.get("type"):
            case "tool_use" if not block.get("id"):
                return ReplyBlock({**block, "id": self._ids.call()}, pieces)
            case "server_tool_use" if not block.get("id"):
                return ReplyBlock({**block, "id": self._ids.server_call()}, pieces)
            case "thinking" if not block.get("signature"):
                thinking_text = "" if omit_thinking else str(block.get("thinking", ""))
                signature = self._signer.sign(thinking_text, self._ids.nonce())
                signed = {**block, "thinking": thinking_text, "signature": signature}
                return ReplyBlock(signed, () if omit_thinking else pieces)
            case _:
                return item


def _pair_server_results(items: Iterable[ReplyItem]) -> tuple[ReplyItem, ...]:
    """Set the ID of each server tool result that has none to the ID of the preceding call."""
    paired: list[ReplyItem] = []
    call_id = ""
    for item in items:
        block = item.block if isinstance(item, ReplyBlock) else {}
        if block.get("type") == "server_tool_use":
            call_id = str(block["id"])
        lacks_id = block.get("type") == "web_search_tool_result" and not block.get("tool_use_id")
        paired.append(ReplyBlock({**block, "tool_use_id": call_id}) if lacks_id else item)
    return tuple(paired)


def _model_info(name: str) -> dict[str, Any]:
    return {
        "type": "model",
        "id": name,
        "display_name": name.replace("-", " ").title(),
        "created_at": _RELEASED,
        "lifecycle": "active",
    }


def _is_from_browser(headers: dict[str, str]) -> bool:
    """Return whether a web page sent the request: other programs send no origin."""
    site = headers.get("sec-fetch-site", "none")
    return "origin" in headers or site not in ("none", "same-origin")


def _is_foreign_host(host: str) -> bool:
    """Return whether the host name is foreign, as in a DNS rebinding attack."""
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
    return name not in ("", HOST, "localhost")
