"""The API's own kinds of errors, and a request refused with one of them."""

from typing import Any, Final

import msgspec

__all__ = ["KINDS", "Refusal", "error_body", "kind_of"]

KINDS: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
"""The kind of error that goes with a status."""
_SERVERS: Final = 500
_WORDS: Final = {
    401: "invalid x-api-key",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    413: "Request exceeds the maximum size",
    429: "This request would exceed your rate limit",
    500: "Internal server error",
    504: "The request timed out",
    529: "Overloaded",
}


class Refusal(msgspec.Struct, frozen=True):
    """Why a request is refused."""

    message: str
    status: int = 400
    kind: str = ""

    def body(self, request_id: str) -> dict[str, Any]:
        """Return it as the API sends it."""
        return error_body(self.status, self.kind, self.message, request_id)


def kind_of(status: int) -> str:
    """Return the kind of error that goes with a status."""
    return KINDS.get(status) or ("invalid_request_error" if status < _SERVERS else "api_error")


def error_body(status: int, kind: str, message: str, request_id: str) -> dict[str, Any]:
    """Return an error as the API sends it; what is not said goes by the status."""
    words = message or _WORDS.get(status, "Error")
    error = {"type": kind or kind_of(status), "message": words}
    return {"type": "error", "error": error, "request_id": request_id}
