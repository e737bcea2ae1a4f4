"""A Messages API on loopback that gives every request the same short answer and keeps what it got."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Self

__all__ = ["ANSWER", "Server"]

ANSWER: Final = "Noted."
_USAGE: Final = {"input_tokens": 12, "output_tokens": 3}


class Server:
    """The server, for as long as the `with` block lasts; `requests` are path and body of each."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, Any]]] = []
        kept = self.requests

        class Handler(_Handler):
            requests = kept

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        # Shutting down waits for one look at the sockets; the usual pause of 0.5 s is too long.
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    requests: list[tuple[str, dict[str, Any]]]

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        """Answer the question whether anybody is there."""
        self._send(200, b"")

    def do_GET(self) -> None:
        """Have nothing to get."""
        self._send_json(404, _error("not found"))

    def do_POST(self) -> None:
        """Answer a request, and keep it."""
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        path = self.path.partition("?")[0]
        try:
            body = json.loads(raw)
        except ValueError:
            self._send_json(400, _error("the body is no JSON"))
            return
        self.requests.append((path, body))
        if path == "/v1/messages/count_tokens":
            self._send_json(200, {"input_tokens": max(1, len(raw) // 4)})
        elif path != "/v1/messages":
            self._send_json(404, _error("not found"))
        elif body.get("stream"):
            self._stream(_message(body))
        else:
            self._send_json(200, _message(body, ANSWER))

    def _stream(self, message: dict[str, Any]) -> None:
        block = {"type": "text", "text": ""}
        words = {"type": "text_delta", "text": ANSWER}
        stop = {"stop_reason": "end_turn", "stop_sequence": None}
        events: list[tuple[str, dict[str, Any]]] = [
            ("message_start", {"message": message | {"stop_reason": None}}),
            ("content_block_start", {"index": 0, "content_block": block}),
            ("content_block_delta", {"index": 0, "delta": words}),
            ("content_block_stop", {"index": 0}),
            ("message_delta", {"delta": stop, "usage": _USAGE}),
            ("message_stop", {}),
        ]
        lines = [f"event: {name}\ndata: {json.dumps({'type': name, **e})}\n\n" for name, e in events]
        self._send(200, "".join(lines).encode(), "text/event-stream; charset=utf-8")

    def _send_json(self, status: int, body: dict[str, Any]) -> None:
        self._send(status, json.dumps(body).encode(), "application/json")

    def _send(self, status: int, body: bytes, kind: str = "text/plain") -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.send_header("request-id", "req_0")
        self.end_headers()
        self.wfile.write(body)


def _message(body: dict[str, Any], text: str = "") -> dict[str, Any]:
    return {
        "id": "msg_interop",
        "type": "message",
        "role": "assistant",
        "model": body.get("model", ""),
        "content": [{"type": "text", "text": text}] if text else [],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": _USAGE,
    }


def _error(message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
