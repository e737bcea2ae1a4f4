"""Responses about health and drift."""

from typing import Annotated

from msgspec import Meta

from steno.check.observed import Code
from steno.report.cases import Harm
from steno.web.api.models.base import Count, Model, Timestamp


class Check(Model, frozen=True, kw_only=True):
    """How far the check of all sessions is. It runs in the background."""

    running: bool
    complete: Annotated[bool, Meta(description="Whether all sessions were checked once.")]
    bytes_done: Count
    bytes_planned: Count
    ended: Annotated[Timestamp | None, Meta(description="When the last check ended.")]
    problem: str


class IndexState(Model, frozen=True, kw_only=True):
    """The state of the index."""

    syncing: bool
    updated: Timestamp | None
    problem: str


class CaseSession(Model, frozen=True, kw_only=True):
    """A session that a case is about."""

    key: Annotated[str | None, Meta(description="Null where it is not in the index.")]
    id: str
    title: str
    about: str


class Case(Model, frozen=True, kw_only=True):
    """Something wrong, and the commands that fix it."""

    harm: Harm
    id: str
    title: str
    description: str
    note: str
    commands: list[str]
    sessions: list[CaseSession]
    more_sessions: Count


class ClientVersion(Model, frozen=True, kw_only=True):
    """A client version that wrote sessions."""

    version: str
    sessions: Count
    differences: Annotated[int, Meta(ge=0, description="Differences from the catalogue.")]


class HealthReport(Model, frozen=True, kw_only=True):
    """The state of all sessions."""

    check: Check
    index: IndexState
    sessions: Count
    checked_sessions: Count
    broken_sessions: Count
    empty_files: Count
    records: Count
    gaps: Count
    due_sessions: Annotated[int, Meta(ge=0, description="Deleted by the client soon.")]
    due_not_archived: Count
    cleanup_days: Annotated[float, Meta(description="How long the client keeps sessions.")]
    unreadable_paths: Count
    differences: Annotated[int, Meta(ge=0, description="Differences from the catalogue.")]
    known_up_to: Annotated[str, Meta(description="The newest client version that is known.")]
    cases: list[Case]
    versions: list[ClientVersion]


class Difference(Model, frozen=True, kw_only=True):
    """A difference between files and the catalogue of the format."""

    code: Code
    kind: str
    path: str
    name: str
    count: Count
    versions: Annotated[dict[str, int], Meta(description="How often, by client version.")]
    types: list[str]
    known: list[str]
    sample: Annotated[str, Meta(description="Masked: letters are x, digits are 0.")]
    docs: Annotated[str | None, Meta(description="The page of the documentation about it.")]


class DriftReport(Model, frozen=True, kw_only=True):
    """What files contain that the catalogue does not know, as `steno drift --json` reports it."""

    check: Check
    catalogue: str
    files: Count
    records: Count
    versions: list[str]
    left_out: Annotated[int, Meta(ge=0, description="Differences too many to list.")]
    drift: list[Difference]
