"""The table of endpoints: which function answers, with which parameters and which response."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

import msgspec

from steno.web.api import parameters as queries
from steno.web.api.models.base import Model
from steno.web.api.models.files import FileHistory, FileList
from steno.web.api.models.health import DriftReport, HealthReport
from steno.web.api.models.search import SearchResult
from steno.web.api.models.sessions import SessionDetail, SessionList
from steno.web.api.models.tasks import TaskDetail, TaskList
from steno.web.api.models.turns import StepList, TurnList
from steno.web.api.models.usage import UsageReport
from steno.web.house import House

VERSION: Final = "/api/v1"
Answer = Callable[[House, dict[str, str], Any], Model]


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One address of the API."""

    path: str
    name: str
    """The operation id."""
    answer: str
    """The module of this package and the function in it."""
    summary: str
    parameters: type[queries.Parameters] = queries.Parameters
    response: type[Model]
    tag: str

    @property
    def function(self) -> Answer:
        """The function that answers."""
        module, _, name = self.answer.partition(":")
        found: Answer = getattr(import_module(f"steno.web.api.{module}"), name)
        return found


ENDPOINTS: Final = (
    Endpoint(
        path=f"{VERSION}/sessions",
        name="list_sessions",
        answer="sessions:list_page",
        summary="List sessions",
        parameters=queries.SessionParameters,
        response=SessionList,
        tag="sessions",
    ),
    Endpoint(
        path=f"{VERSION}/sessions/{{key}}",
        name="get_session",
        answer="sessions:detail",
        summary="Get one session",
        response=SessionDetail,
        tag="sessions",
    ),
    Endpoint(
        path=f"{VERSION}/sessions/{{key}}/turns",
        name="list_turns",
        answer="turns:turn_page",
        summary="List the turns of a session",
        parameters=queries.TurnParameters,
        response=TurnList,
        tag="sessions",
    ),
    Endpoint(
        path=f"{VERSION}/sessions/{{key}}/steps",
        name="list_steps",
        answer="turns:step_page",
        summary="List the steps of a session, as `steno export --format steps` writes them",
        parameters=queries.Paged,
        response=StepList,
        tag="sessions",
    ),
    Endpoint(
        path=f"{VERSION}/search",
        name="search",
        answer="search:search_page",
        summary="Search all sessions",
        parameters=queries.SearchParameters,
        response=SearchResult,
        tag="search",
    ),
    Endpoint(
        path=f"{VERSION}/usage",
        name="get_usage",
        answer="usage:usage",
        summary="Get token usage and cost, as `steno usage --json` prints it",
        parameters=queries.UsageParameters,
        response=UsageReport,
        tag="usage",
    ),
    Endpoint(
        path=f"{VERSION}/files",
        name="list_files",
        answer="files:file_page",
        summary="List the files that sessions read or changed",
        parameters=queries.FileParameters,
        response=FileList,
        tag="files",
    ),
    Endpoint(
        path=f"{VERSION}/files/{{tag}}",
        name="get_file",
        answer="files:file_history",
        summary="Get a file with its sessions and versions",
        parameters=queries.Paged,
        response=FileHistory,
        tag="files",
    ),
    Endpoint(
        path=f"{VERSION}/health",
        name="get_health",
        answer="health:health",
        summary="Get the problems of all sessions, as the health page shows them",
        response=HealthReport,
        tag="health",
    ),
    Endpoint(
        path=f"{VERSION}/drift",
        name="get_drift",
        answer="health:drift",
        summary="Get the differences from the known format, as `steno drift --json` prints them",
        response=DriftReport,
        tag="health",
    ),
    Endpoint(
        path=f"{VERSION}/tasks",
        name="list_tasks",
        answer="tasks:task_page",
        summary="List sessions as tasks",
        parameters=queries.TaskParameters,
        response=TaskList,
        tag="tasks",
    ),
    Endpoint(
        path=f"{VERSION}/tasks/{{id}}",
        name="get_task",
        answer="tasks:task_detail",
        summary="Get a session as a task with its steps",
        parameters=queries.Paged,
        response=TaskDetail,
        tag="tasks",
    ),
)
DOCUMENT: Final = f"{VERSION}/openapi.json"
"""Where the OpenAPI document is."""
PATHS: Final = (*(endpoint.path for endpoint in ENDPOINTS), DOCUMENT)
