"""The base of all responses, types of fields that many have, and the body of errors."""

from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

Timestamp: TypeAlias = Annotated[
    str, Meta(extra_json_schema={"format": "date-time"}, description="ISO 8601, UTC.")
]
Cursor: TypeAlias = Annotated[
    str,
    Meta(description="Pass as `cursor` to get the next page."),
]
Count: TypeAlias = Annotated[int, Meta(ge=0)]


class Model(Struct, frozen=True, kw_only=True):
    """The base of all responses."""


class ErrorBody(Model, frozen=True, kw_only=True):
    """What failed and what to do about it."""

    code: Annotated[
        str,
        Meta(
            description="One of bad_request, unauthorized, forbidden, not_found, "
            "method_not_allowed, misdirected_request, internal_error, not_ready."
        ),
    ]
    message: str
    hint: Annotated[str, Meta(description="The next step; empty where there is none.")]


class ErrorResponse(Model, frozen=True, kw_only=True):
    """The body of every error."""

    error: ErrorBody
