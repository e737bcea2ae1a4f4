"""Builds the briefs of sessions with their open items, and selects sessions by project and date range."""

import os
import re
import sqlite3
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from fnmatch import fnmatch
from typing import Any, Final

import msgspec

from steno.errors import Unreadable
from steno.format.lenient_json import as_list, as_object
from steno.format.tool_catalogue import AWAITED_TOOLS
from steno.report.actions.action import Action, actions_of_turn, actions_of_unlinked_agents
from steno.report.brief.brief_document import Brief, BriefTurn, OpenItem, PullRequest, WorkSummary
from steno.report.brief.turn_reader import (
    COURTESY_QUESTION,
    TurnPositions,
    TurnReader,
    backups_by_turn,
    compactions_by_turn,
    find_decisions,
    is_question,
    mark_backups_by_call,
    queue_by_turn,
)
from steno.report.brief.work_summary import (
    changed_files,
    command_runs,
    count_read_only_commands,
    find_commits,
    find_failures,
    find_pull_requests,
    linked_pull_requests,
    progress_by_call,
    subagent_summaries,
    subagents_by_turn,
    test_runs,
    tool_counts,
)
from steno.report.clock import seconds_from_ms, timestamp_of
from steno.report.humanize import relative_to_project
from steno.report.usage.usage_query import UsageQuery
from steno.session.session import Session
from steno.session.session_status import Status, activity_age
from steno.session.turns.prompts import shorten_title
from steno.session.turns.subagents import find_references
from steno.session.turns.turn_builder import Turn
from steno.store import environment
from steno.store.archive.catalogue import archived_at
from steno.store.discovery import DiscoveredFile, discover_file
from steno.store.session_lookup import open_file_session

_CLIENT_ORIGINS: Final = frozenset(("summary", "meta"))
"""Origins of text that Claude Code wrote."""


def build_brief(
    session: Session,
    *,
    since: float | None = None,
    until: float | None = None,
    age: float | None = None,
    skipped_prompts: Container[str] = (),
    full: bool = False,
) -> Brief:
    """Return the brief of a session.

    `since` and `until` restrict the turns by start time (seconds since 1970; `until` is exclusive); open items always
    refer to the whole session. `age` is the time in seconds since the file was last written; the status depends on it.
    `skipped_prompts` are the IDs of prompts whose turns are in another brief, as forks and resumed sessions contain
    copies of them. `full` keeps call parameters of any length.

    Raises:
        Unreadable: The file changed while it was read.
    """
    turns = session.turns()
    actions = _all_actions(session, turns)
    project = session.project
    session_work = _session_work(session, turns, actions)
    shown_turns = [turn for turn in turns if _is_in_range(turn, since, until) and _uuid(turn) not in skipped_prompts]
    by_turn: dict[int, list[Action]] = {turn.number: [] for turn in turns}
    for action in actions:
        by_turn[action.turn].append(action)
    contents = _TurnContents(session, turns, actions, session_work, full=full)
    session_work = contents.work
    facts = session.facts
    status = session.status(age)
    brief_turns = tuple(contents.build_turn(turn, by_turn[turn.number]) for turn in shown_turns)
    work = (
        session_work if len(shown_turns) == len(turns) else _work_of_turns(session_work, brief_turns, by_turn, project)
    )
    return Brief(
        id=session.id,
        title=_title(session, turns),
        project=project,
        branch=session.branch,
        models=session.models,
        started=timestamp_of(facts.started),
        ended=timestamp_of(facts.ended),
        seconds=_working_seconds(shown_turns),
        standing=status.standing,
        reason=status.reason,
        turns=brief_turns,
        elsewhere=len(turns) - len(shown_turns),
        work=work,
        open=find_open_items(turns, actions, session_work, status, _uncommitted(session, actions)),
        gaps=sum(bool(gap.damage) for gap in session.transcript.gaps),
    )


def _title(session: Session, turns: Sequence[Turn]) -> str:
    """Return the title; for an untitled session, its first prompt."""
    title = session.title
    if title.source != "none":
        return title.text
    prompts = (shorten_title(turn.prompt.text) for turn in turns if turn.prompt is not None)
    return next(filter(None, prompts), title.text)


def _all_actions(session: Session, turns: Sequence[Turn]) -> list[Action]:
    seen_threads: set[int] = set()
    actions = [action for turn in turns for action in actions_of_turn(turn, session.transcript, seen_threads)]
    _attach_background_reports(actions, session)
    last = turns[-1].number if turns else 0
    return [*actions, *actions_of_unlinked_agents(session.loose_agents, last, seen_threads)]


def _attach_background_reports(actions: Iterable[Action], session: Session) -> None:
    """Set the reports of background sub-agents that have no records."""
    unreported = [
        action
        for action in actions
        if action.step.kind == "agent" and action.step.agent is None and not action.agent and action.is_call
    ]
    if unreported:
        reports = find_references(session.transcript).reports
        by_call = {report.call_id: report for report in reports.values() if report.call_id}
        for action in unreported:
            agent_id = action.client_result.get("agentId")
            report = reports.get(agent_id) if isinstance(agent_id, str) else None
            action.notice = report or by_call.get(action.step.call_id)


def _is_in_range(turn: Turn, since: float | None, until: float | None) -> bool:
    if since is None and until is None:
        return True
    moment = timestamp_of(turn.started)
    if moment is None:
        return False
    return (since is None or moment >= since) and (until is None or moment < until)


def _uuid(turn: Turn) -> str:
    return (turn.prompt.node.uuid or "") if turn.prompt is not None else ""


def _working_seconds(turns: Sequence[Turn]) -> float:
    """Return the working time of turns in seconds, counting overlaps once."""
    spans = sorted(
        (turn.started.timestamp(), turn.started.timestamp() + turn.duration)
        for turn in turns
        if turn.started is not None and turn.duration
    )
    total, last_end = 0.0, float("-inf")
    for start, end in spans:
        total += max(0.0, end - max(start, last_end))
        last_end = max(last_end, end)
    return total


def _session_work(session: Session, turns: Sequence[Turn], actions: list[Action]) -> WorkSummary:
    project = session.project
    api_answered = not turns or turns[-1].failure is None
    failures, minor_failures = find_failures(actions, project, api_answered=api_answered)
    created = find_pull_requests(actions)
    known_urls = {pull.url for pull in created}
    linked_by_url = {pull.url: pull for pull in linked_pull_requests(session.transcript, turns)}
    pull_requests: list[PullRequest] = [
        *created,
        *(pull_request for url, pull_request in linked_by_url.items() if url not in known_urls),
    ]
    partial_work = WorkSummary(
        commits=find_commits(actions),
        pulls=tuple(pull_requests),
        decisions=find_decisions(actions, {turn.number: turn.answer for turn in turns}, project),
        troubles=failures,
        slips=minor_failures,
    )
    return _select_work(partial_work, actions, None, project)


def _work_of_turns(
    session_work: WorkSummary, turns: Sequence[BriefTurn], actions_by_turn: dict[int, list[Action]], project: str
) -> WorkSummary:
    numbers = sorted(turn.number for turn in turns)
    turn_actions = [action for turn in numbers for action in actions_by_turn[turn]]
    snapshot_files = dict.fromkeys(path for turn in turns for path in turn.work.snapshot_files)
    work = _select_work(session_work, turn_actions, set(numbers), project)
    return msgspec.structs.replace(work, snapshot_files=tuple(snapshot_files))


def _select_work(
    session_work: WorkSummary, actions: Sequence[Action], turns: set[int] | None, project: str
) -> WorkSummary:

    def is_selected(turn: int) -> bool:
        return turns is None or turn in turns

    files = changed_files(actions, project)
    return WorkSummary(
        tools=tool_counts(actions),
        files=files,
        snapshot_files=session_work.snapshot_files if turns is None else (),
        changed=len(files),
        added=sum(item.added for item in files),
        removed=sum(each.removed for each in files),
        commands=command_runs(actions, project),
        looks=count_read_only_commands(actions),
        tests=test_runs(actions, project),
        helpers=subagent_summaries(actions),
        commits=tuple(each for each in session_work.commits if is_selected(each.turn)),
        pulls=tuple(each for each in session_work.pulls if is_selected(each.turn)),
        decisions=tuple(each for each in session_work.decisions if is_selected(each.turn)),
        troubles=tuple(each for each in session_work.troubles if is_selected(each.turn)),
        slips=session_work.slips if turns is None else 0,
    )


class _TurnContents:
    """Content of all turns, collected once for the whole session."""

    def __init__(
        self,
        session: Session,
        turns: Sequence[Turn],
        actions: Sequence[Action],
        session_work: WorkSummary,
        *,
        full: bool,
    ) -> None:
        transcript, self._project = session.transcript, session.project
        positions = TurnPositions(transcript, turns)
        self._reader = TurnReader(full=full)
        self._transcript = transcript
        session_start = timestamp_of(session.facts.started)
        backups = backups_by_turn(transcript, positions, session.project, session_start)
        changed_paths = {changed_file.path for changed_file in session_work.files}
        self._backups, backup_only = mark_backups_by_call(backups, changed_paths)
        self.work = msgspec.structs.replace(session_work, snapshot_files=tuple(backup_only))
        self._compactions = compactions_by_turn(session, turns, positions)
        self._queue = queue_by_turn(transcript, positions)
        progress = progress_by_call(transcript, self._reader.longest)
        self._agents = subagents_by_turn(actions, session.loose_agents, turns, positions, progress, self._reader)

    def build_turn(self, turn: Turn, actions: Sequence[Action]) -> BriefTurn:
        """Return a turn with its content."""
        prompt, number = turn.prompt, turn.number
        prompt_text = "" if prompt is None or prompt.origin in _CLIENT_ORIGINS else prompt.text
        turn_rows = self._reader.read_turn(self._transcript, turn)
        compactions = tuple(
            msgspec.structs.replace(item, order=turn_rows.orders.get(item.uuid, 0))
            for item in self._compactions.get(number, ())
        )
        backups = self._backups.get(number, [])
        work = _select_work(self.work, actions, {number}, self._project)
        backup_only = (each for each in backups if not each.by_call and each.change != "earlier")
        snapshot_files = dict.fromkeys(each.path for each in backup_only)
        work = msgspec.structs.replace(work, snapshot_files=tuple(snapshot_files))
        by_human = prompt is not None and prompt.origin == "human"
        return BriefTurn(
            number=number,
            uuid=_uuid(turn),
            origin=prompt.origin if prompt is not None else "",
            text=prompt_text.strip(),
            images=prompt.images if prompt is not None else 0,
            meanwhile=self._reader.queued_messages(self._transcript, turn),
            answer=turn.answer.strip(),
            started=timestamp_of(turn.started),
            seconds=turn.duration,
            interrupted=turn.interrupted,
            compacted=any(each.kind == "full" and each.order < 0 for each in compactions),
            idle=not (turn.answer or turn_rows.calls or work.tools or turn.interrupted or by_human),
            texts=turn_rows.texts,
            calls=turn_rows.calls,
            agents=tuple(self._agents.get(number, ())),
            backups=tuple(backups),
            compactions=compactions,
            queue=tuple(self._queue.get(number, ())),
            work=work,
        )


def _uncommitted(session: Session, actions: list[Action]) -> list[str]:
    """Return the changed files without a commit, if the project uses git."""
    uses_git = bool(session.branch) or any(
        action.shell_command is not None and action.shell_command.runs("git") for action in actions
    )
    return uncommitted_files(actions, session.project) if uses_git else []


_SESSIONS_QUERY: Final = """
SELECT f.path, f.size, s.project FROM sessions s JOIN files f ON f.id = s.file
WHERE s.agent = '' AND NOT s.hidden AND WHEN ORDER BY coalesce(s.ended, 0) DESC, s.file DESC
"""
_HAS_TURN_IN_RANGE: Final = "EXISTS (SELECT 1 FROM turns t WHERE t.file = s.file AND t.started >= ? AND t.started < ?)"
_MAX_TIME: Final = 1 << 62
_MIN_SESSION_TOKENS: Final = 25
"""Minimum tokens of a session in a brief."""


class SessionFile(msgspec.Struct, frozen=True):
    """Path and size of a session file."""

    path: str
    size: int = 0


def session_file_of(discovered: DiscoveredFile) -> SessionFile:
    """Return the path and size of a discovered file."""
    return SessionFile(discovered.path, discovered.size)


def select_sessions(connection: sqlite3.Connection, query: UsageQuery) -> list[SessionFile]:
    """Return the sessions of a query with a turn in its time range, from the index, newest first."""
    condition, values = "1", list[Any]()
    if query.is_bounded:
        since = -_MAX_TIME if query.since is None else query.since
        condition, values = (_HAS_TURN_IN_RANGE, [since, _MAX_TIME if query.until is None else query.until])
    rows = connection.execute(_SESSIONS_QUERY.replace("WHEN", condition), values)
    return [SessionFile(os.fsdecode(path), size) for path, size, project in rows if query.matches_project(project)]


def max_sessions_for(budget: int) -> int:
    """Return the maximum number of sessions that can fit a budget."""
    return budget // _MIN_SESSION_TOKENS + 1


def build_briefs(
    session_files: Sequence[SessionFile],
    query: UsageQuery | None = None,
    *,
    progress: Callable[[int], None] | None = None,
    unreadable: list[str] | None = None,
    full: bool = False,
) -> list[Brief]:
    """Return the briefs of sessions, in the given order (newest first).

    A turn that several sessions contain is included once, in the oldest. Sessions without a turn in the time range are
    omitted; `progress` receives the size of each session read, and unreadable paths are added to `unreadable`. `full`
    keeps call parameters of any length.

    Raises:
        Unreadable: A session cannot be read, and `unreadable` is None.
    """
    known_prompts: set[str] = set()
    briefs: list[Brief] = []
    for session_file in reversed(session_files):
        try:
            brief = _build_one(session_file, query or UsageQuery(), known_prompts, full=full)
        except Unreadable:
            if unreadable is None:
                raise
            unreadable.append(session_file.path)
            continue
        if brief.turns or not (brief.elsewhere and (query or known_prompts)):
            briefs.append(brief)
        known_prompts.update(turn.uuid for turn in brief.turns if turn.uuid)
        if progress is not None:
            progress(session_file.size)
    return briefs[::-1]


def _build_one(session_file: SessionFile, query: UsageQuery, known_prompts: Iterable[str], *, full: bool) -> Brief:
    discovered = archived_at(session_file.path) if not os.path.lexists(session_file.path) else None
    discovered = discovered or discover_file(session_file.path)
    with open_file_session(discovered) as session:
        ended = session.ended
        age = activity_age(environment.now(), None if ended is None else ended.timestamp())
        return build_brief(
            session,
            since=seconds_from_ms(query.since),
            until=seconds_from_ms(query.until),
            age=age,
            skipped_prompts=frozenset(known_prompts),
            full=full,
        )


_CLAUSE_ENDS: Final = re.compile(r"(?<=[.!?:])\s+|(?<=[。\uff01\uff1f\uff1a])\s*")
_MAX_TEXT_LENGTH: Final = 400
_TASK_ID: Final = re.compile(r"Task #(\w{1,20})")
_ADDS_EVERYTHING: Final = re.compile(
    r"\bgit\b[^\n;&|]{0,200}\badd\s+(?:-A|--all|-u|\.(?=\s|$|[;&|]))|\bgit\b[^\n;&|]{0,200}\bcommit\s+(?:-\w*a|--all)"
)
_GIT_ADD: Final = re.compile(r"\bgit\b[^\n;&|]{0,200}?\badd\s+([^\n;&|]+)")
_DISCARDS_CHANGES: Final = re.compile(
    r"\bgit\b[^\n;&|]{0,200}\b(?:reset\s+--hard|(?:checkout|restore)\s+(?:--\s+)?\.(?=\s|$))"
)
_OUTSIDE_PREFIXES: Final = ("/", "~", "\\")
_GLOB: Final = re.compile(r"[*?\[]")
_MAX_STAGED_WORDS: Final = 2_000
"""Maximum number of arguments of `git add` considered for a commit."""
_CLOSED_STATES: Final = frozenset(("completed", "cancelled", "canceled", "deleted"))


def find_open_items(
    turns: list[Turn], actions: list[Action], work: WorkSummary, status: Status, uncommitted_paths: Iterable[str]
) -> tuple[OpenItem, ...]:
    """Return the open items; `uncommitted_paths` are changed files without a commit."""
    number = turns[-1].number if turns else 0
    items = [*_interruption(status, number), *_open_questions(turns, actions)]
    items += [OpenItem(kind="todo", text=text, about=state) for text, state in open_todos(actions)]
    items += _failing_items(work, number)
    items += [
        OpenItem(kind="running", text=helper.task, about=helper.kind, turn=helper.turn)
        for helper in work.helpers
        if helper.status == "running"
    ]
    paths = list(uncommitted_paths)
    items += [OpenItem(kind="uncommitted", text=path, of=len(paths)) for path in paths]
    return tuple(items)


def _interruption(status: Status, turn: int) -> Iterator[OpenItem]:
    if status.standing == "interrupted":
        yield OpenItem(kind="interrupted", text=status.reason, turn=turn)


def _open_questions(turns: list[Turn], actions: list[Action]) -> Iterator[OpenItem]:
    last_turn = turns[-1] if turns else None
    if last_turn is None:
        return
    for action in actions:
        is_user_question = action.turn == last_turn.number and action.step.verb in AWAITED_TOOLS and not action.agent
        if is_user_question and action.step.state in ("open", "interrupted"):
            yield OpenItem(kind="question", text=action.step.subject[:_MAX_TEXT_LENGTH], turn=last_turn.number)
    question = final_question(last_turn.answer)
    if question and last_turn.done:
        yield OpenItem(kind="question", text=question, turn=last_turn.number)


def final_question(answer: str) -> str:
    """Return the question at the end of an answer; empty if there is none.

    >>> final_question("All green. Shall I push it?")
    'Shall I push it?'
    """
    paragraph = answer.rstrip().rpartition("\n")[2].strip(" *_")
    if not is_question(paragraph):
        return ""
    question = [clause for clause in _CLAUSE_ENDS.split(paragraph) if clause][-1][-_MAX_TEXT_LENGTH:]
    return "" if COURTESY_QUESTION.match(question) else question


def _failing_items(work: WorkSummary, turn: int) -> Iterator[OpenItem]:
    last_test = work.tests[-1] if work.tests else None
    if last_test is not None and not last_test.ok:
        numbers = f"{last_test.failed:,} failed" if last_test.failed else "failed"
        yield OpenItem(kind="tests", text=last_test.command, about=numbers, turn=last_test.turn)
    for trouble in work.troubles:
        is_last = not trouble.solved and trouble.turn == turn
        if is_last and not any(trouble.what == test.command for test in work.tests):
            yield OpenItem(kind="error", text=trouble.what, about=trouble.said, turn=trouble.turn)


# To-dos of the agent


def open_todos(actions: Iterable[Action]) -> list[tuple[str, str]]:
    """Return the open to-dos of the agent with their states."""
    items: dict[str, tuple[str, str]] = {}
    for action in actions:
        if action.agent or action.step.state != "ok":
            continue
        match action.step.verb:
            case "TodoWrite":
                items = _todos_of_call(action.tool_input)
            case "TaskCreate":
                _add_task(action, items)
            case "TaskUpdate":
                _update_task(action.tool_input, items)
            case _:
                continue
    return [(text, state) for text, state in items.values() if state not in _CLOSED_STATES]


def _todos_of_call(tool_input: dict[str, Any]) -> dict[str, tuple[str, str]]:
    items: dict[str, tuple[str, str]] = {}
    for place, item in enumerate(as_list(tool_input.get("todos")) or []):
        fields = as_object(item) or {}
        text, state = fields.get("content"), fields.get("status")
        if isinstance(text, str) and isinstance(state, str):
            items[str(place)] = (text[:_MAX_TEXT_LENGTH], state)
    return items


def _add_task(action: Action, items: dict[str, tuple[str, str]]) -> None:
    task = as_object(action.client_result.get("task")) or {}
    task_id = task.get("id")
    if not isinstance(task_id, str):
        match = _TASK_ID.search(action.output_text[:200])
        task_id = match[1] if match else f"?{len(items)}"
    items[task_id] = (action.step.subject[:_MAX_TEXT_LENGTH], "pending")


def _update_task(tool_input: dict[str, Any], items: dict[str, tuple[str, str]]) -> None:
    task_id, state, subject = (tool_input.get("taskId"), tool_input.get("status"), tool_input.get("subject"))
    if not isinstance(task_id, str) or task_id not in items:
        return
    text, before = items[task_id]
    items[task_id] = (
        subject[:_MAX_TEXT_LENGTH] if isinstance(subject, str) and subject else text,
        state if isinstance(state, str) else before,
    )


# Uncommitted files


def uncommitted_files(actions: Iterable[Action], project: str) -> list[str]:
    """Return the changed files in the project that no commit of the session includes."""
    changed_paths: dict[str, None] = {}
    staged: list[str] = []
    for action in actions:
        touch = action.step.touch
        if touch is not None and touch.changes and action.step.state == "ok":
            path = relative_to_project(touch.path, project)
            changed_paths.pop(path, None)
            changed_paths[path] = None
        command = action.step.command
        if not command or action.shell_command is None or not action.shell_command.runs("git"):
            continue
        if _DISCARDS_CHANGES.search(command) and action.step.state == "ok":
            changed_paths.clear()
        staged += ["*"] if _ADDS_EVERYTHING.search(command) else _staged_names(command)
        del staged[_MAX_STAGED_WORDS:]
        if action.shell_command.runs("git", "commit") and _commit_succeeded(action):
            for path in [path for path in changed_paths if _is_staged(path, staged)]:
                del changed_paths[path]
            staged = []
    return [path for path in changed_paths if not path.startswith(_OUTSIDE_PREFIXES) and path[1:2] != ":"]


def _commit_succeeded(action: Action) -> bool:
    return action.step.state == "ok" or bool(re.search(r"^\[\S+.* [0-9a-f]{7,40}\] ", action.output_text, re.MULTILINE))


def _staged_names(command: str) -> list[str]:
    return [
        word.strip("\"'")
        for match in _GIT_ADD.finditer(command[:20_000])
        for word in match[1].split()
        if not word.startswith("-")
    ]


def _is_staged(path: str, staged: list[str]) -> bool:
    """Return whether a file is part of a commit; without `git add`, every file is."""
    if not staged:
        return True
    for word in staged:
        name = word.removeprefix("./").rstrip("/")
        if word == "*" or path == name or path.endswith(f"/{name}") or name.endswith(f"/{path}"):
            return True
        if path.startswith(f"{name}/") or f"/{name}/" in path or (_GLOB.search(name) and fnmatch(path, name)):
            return True
    return False
