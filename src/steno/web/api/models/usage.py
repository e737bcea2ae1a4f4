"""Responses with token usage and cost."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from steno.web.api.models.base import Count, Model, Timestamp


class Usage(Model, frozen=True, kw_only=True):
    """Tokens and their cost. Each API response counts once."""

    responses: Count
    input_tokens: Count
    output_tokens: Count
    cache_creation_input_tokens: Count
    cache_creation_5m_input_tokens: Count
    cache_creation_1h_input_tokens: Count
    cache_read_input_tokens: Count
    web_search_requests: Count
    cost_usd: Annotated[
        float | None, Meta(description="Null where no model in it has a known price.")
    ]
    cost_micro_usd: int | None
    estimated_responses: Annotated[
        int, Meta(description="Responses whose output tokens the client under-reported.")
    ]
    fast_at_normal_price: Annotated[
        int, Meta(description="Fast responses without a known fast price, at the normal price.")
    ]
    unpriced_tokens: Annotated[
        dict[str, int], Meta(description="Tokens without a known price, by model.")
    ]


class UsageRow(Usage, frozen=True, kw_only=True):
    """One row of a usage report. The fields that name it depend on `by`."""

    day: str | UnsetType = UNSET
    week: str | UnsetType = UNSET
    month: str | UnsetType = UNSET
    hour: str | UnsetType = UNSET
    block5h: str | UnsetType = UNSET
    project: Annotated[
        str | UnsetType, Meta(description="With `by` project, branch, session and agent.")
    ] = UNSET
    model: str | UnsetType = UNSET
    branch: str | UnsetType = UNSET
    session: str | UnsetType = UNSET
    agent: str | UnsetType = UNSET
    title: Annotated[
        str | UnsetType, Meta(description="Of the session; with `by` session and agent.")
    ] = UNSET
    tool: str | UnsetType = UNSET
    calls: Annotated[int | UnsetType, Meta(description="With `by` tool.")] = UNSET
    failed: Annotated[int | UnsetType, Meta(description="With `by` tool: failed calls.")] = UNSET


class AbandonedUsage(Usage, frozen=True, kw_only=True):
    """The part of the usage that went into abandoned branches."""

    sessions_not_seen: Annotated[
        int, Meta(description="Sessions that may have more and were not read.")
    ]


class UsageReport(Model, frozen=True, kw_only=True):
    """Usage by time, model, project or session, as `steno usage --json` reports it."""

    by: str
    since: Timestamp | None
    until: Timestamp | None
    complete: Annotated[
        bool, Meta(description="False while the index is being brought up to date.")
    ]
    rows: list[UsageRow]
    totals: Usage
    abandoned: AbandonedUsage | None
