"""Summary of the work in a session: tools, files, commands, tests, commits, failures, sub-agents.

Claude Code 2.1.12 to 2.1.81 wrote an `agent_progress` record for each message of a sub-agent; some sub-agents
have no other records.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

import msgspec

from steno.format.lenient_json import as_object, decode_lenient
from steno.format.message import ServerToolUse, Text, ToolResult, ToolUse, read_blocks
from steno.format.records import Record, read_time
from steno.format.tool_catalogue import AGENT, tool_facts
from steno.report.actions.action import Action, decisive_line
from steno.report.actions.shell_command import ShellCommand, short_command
from steno.report.brief.brief_document import (
    AssistantText,
    ChangedFile,
    CommandRun,
    Commit,
    Failure,
    PullRequest,
    Subagent,
    SubagentSummary,
    TestRun,
    ToolCall,
)
from steno.report.brief.brief_reduction import shorten_input
from steno.report.brief.turn_reader import TurnPositions, TurnReader
from steno.report.humanize import relative_to_project
from steno.session.transcript import Transcript
from steno.session.turns.subagents import Thread
from steno.session.turns.turn_builder import Turn

_MAX_COMMAND_LENGTH: Final = 400
_MAX_REPORT_LENGTH: Final = 2_000


def tool_counts(actions: Iterable[Action]) -> dict[str, int]:
    """Return the number of calls by tool, most frequent first, without calls of sub-agents."""
    counts = Counter(
        AGENT if action.step.kind == "agent" else action.step.verb
        for action in actions
        if action.is_call and not action.agent
    )
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def changed_files(actions: Iterable[Action], project: str) -> tuple[ChangedFile, ...]:
    """Return the changed files, most changed lines first."""
    sums: dict[str, list[int]] = {}
    for action in actions:
        touch = action.step.touch
        if touch is None or not touch.changes or not touch.path or action.step.state != "ok":
            continue
        file_sums = sums.setdefault(relative_to_project(touch.path, project), [0, 0, 0])
        file_sums[0] += 1
        file_sums[1] += touch.added
        file_sums[2] += touch.removed
    files = [
        ChangedFile(path=path, edits=edits, added=added, removed=removed)
        for path, (edits, added, removed) in sums.items()
    ]
    return tuple(sorted(files, key=lambda file: (-file.added - file.removed, file.path)))


def command_runs(actions: Iterable[Action], project: str) -> tuple[CommandRun, ...]:
    """Return the commands that change something and are not tests, each once with its last outcome."""
    runs: dict[str, CommandRun] = {}
    for action in actions:
        shell_command = action.shell_command
        if (
            shell_command is None
            or shell_command.only_reads
            or action.test_result
            or _is_listed_elsewhere(shell_command)
        ):
            continue
        command = short_command(action.step.command, project)[:_MAX_COMMAND_LENGTH]
        earlier = runs.pop(command, None)
        runs[command] = CommandRun(
            command=command,
            outcome=action.step.outcome,
            state=action.step.state,
            times=1 + (earlier.times if earlier else 0),
            failed=(action.step.state == "failed") + (earlier.failed if earlier else 0),
            turn=action.turn,
        )
    return tuple(runs.values())


def _is_listed_elsewhere(shell: ShellCommand) -> bool:
    return shell.runs("git", "commit") or shell.runs("gh", "pr", "create")


def count_read_only_commands(actions: Iterable[Action]) -> int:
    """Return the number of read-only commands."""
    return sum(action.shell_command is not None and action.shell_command.only_reads for action in actions)


def test_runs(actions: Iterable[Action], project: str) -> tuple[TestRun, ...]:
    """Return the test commands, each once, in the order of their last run."""
    runs: dict[str, TestRun] = {}
    for action in actions:
        if action.test_result is None:
            continue
        ok, numbers = action.test_result.ok, action.test_result.counts
        command = short_command(action.step.command, project)[:_MAX_COMMAND_LENGTH]
        earlier = runs.pop(command, None)
        runs[command] = TestRun(
            command=command,
            ok=ok,
            passed=numbers.passed if numbers and (numbers.passed or ok) else None,
            failed=numbers.failed if numbers else None,
            times=1 + (earlier.times if earlier else 0),
            bad=(not ok) + (earlier.bad if earlier else 0),
            turn=action.turn,
        )
    return tuple(runs.values())


def subagent_summaries(actions: Iterable[Action]) -> tuple[SubagentSummary, ...]:
    """Return the sub-agents that the session itself started, without nested ones."""
    summaries: dict[int, SubagentSummary] = {}
    for action in actions:
        if action.agent or action.step.kind != "agent":
            continue
        thread = action.step.agent
        if thread is not None:
            if id(thread) not in summaries:
                summaries[id(thread)] = _subagent_summary(thread, action)
        elif action.is_call:
            summaries[-id(action)] = _summary_without_records(action)
    return tuple(summaries.values())


def _subagent_summary(thread: Thread, action: Action) -> SubagentSummary:
    steps = [step for descendant in thread.family() for step in descendant.steps]
    paths = {step.touch.path for step in steps if step.touch is not None and step.touch.changes}
    return SubagentSummary(
        kind=thread.kind or action.step.verb,
        task=thread.description or action.step.subject,
        status=thread.status,
        steps=sum(step.kind in ("tool", "agent") for step in steps),
        failed=sum(step.state == "failed" for step in steps),
        changed=len(paths),
        report=thread.report[:_MAX_REPORT_LENGTH],
        turn=action.turn,
    )


def _summary_without_records(action: Action) -> SubagentSummary:
    """Return a summary of a sub-agent that has no records."""
    step, count = action.step, action.client_result.get("totalToolUseCount")
    return SubagentSummary(
        kind=step.verb,
        task=step.subject,
        status=action.reported_status,
        steps=max(0, count) if isinstance(count, int) else 0,
        report=action.reported_text[:_MAX_REPORT_LENGTH],
        turn=action.turn,
    )


_COMMIT_LINE: Final = re.compile(
    r"^\[(?P<branch>[^\]\n]{1,200}?)(?: \(root-commit\))? (?P<hash>[0-9a-f]{7,40})\] (?P<subject>\S.*)$", re.MULTILINE
)
_COMMIT_SIZE: Final = re.compile(
    # For commits by other authors and amended commits, git prints author and date first.
    r"(?:\s*(?:Author|Committer|Date): [^\n]*\n){0,3}"
    r"\s*(\d{1,9}) files? changed(?:, (\d{1,9}) insertions?\(\+\))?(?:, (\d{1,9}) deletions?\(-\))?"
)
_COMMIT_MESSAGE: Final = re.compile(
    r"(?:\s-[a-zA-Z]*m|\s--message)[ =]?\s*"
    r"(?:\"\$\(cat <<-?\s*['\"]?\w+['\"]?\n\s*(?P<here>[^\n]+)|\"(?P<double>[^\"\n]+)|'(?P<single>[^'\n]+))"
)
_PULL_REQUEST_TITLE: Final = re.compile(r"\s(?:--title|-t)[ =]\s*(?:\"(?P<double>[^\"\n]+)|'(?P<single>[^'\n]+))")
_PULL_REQUEST_URL: Final = re.compile(
    r"https?://[\w.:-]+(?:/[\w.~-]+){2,6}/(?:pull|merge_requests|pullrequest|pull-requests)/\d{1,9}"
)
_DRY_RUN_PUSH: Final = re.compile(r"\bgit\b[^\n;&|]{0,200}\bpush\b[^\n;&|]{0,400}\s(?:--dry-run|-n)\b")
_REJECTED_PUSH: Final = re.compile(r"\[(?:remote )?rejected\]|^error: failed to push", re.MULTILINE)
_HASH_LENGTH: Final = 12
_MAX_SUBJECT_LENGTH: Final = 300


def find_commits(actions: Iterable[Action]) -> tuple[Commit, ...]:
    """Return the commits in order; an amended commit counts once."""
    found_commits: list[Commit] = []
    for action in actions:
        shell_command = action.shell_command
        if shell_command is None or not shell_command.runs("git"):
            continue
        new_commits = list(_commits_of_action(action))
        if new_commits and found_commits and re.search(r"\s--amend\b", action.step.command):
            found_commits.pop()
        found_commits += new_commits
        if _pushes(action):
            found_commits = [msgspec.structs.replace(commit, pushed=True) for commit in found_commits]
    return tuple(found_commits)


def _pushes(action: Action) -> bool:
    if action.shell_command is None or not action.shell_command.runs("git", "push") or action.step.state != "ok":
        return False
    return not (_DRY_RUN_PUSH.search(action.step.command) or _REJECTED_PUSH.search(action.output_text))


def _commits_of_action(action: Action) -> Iterator[Commit]:
    shell_command = action.shell_command
    if shell_command is None or not any(
        shell_command.runs("git", verb) for verb in ("commit", "revert", "cherry-pick", "merge", "am")
    ):
        return
    text = action.output_text
    match = None
    for match in _COMMIT_LINE.finditer(text):
        size = _COMMIT_SIZE.match(text, match.end() + 1)
        yield Commit(
            subject=match["subject"].strip()[:_MAX_SUBJECT_LENGTH],
            hash=match["hash"][:_HASH_LENGTH],
            branch=match["branch"],
            files=_matched_number(size, 1),
            added=_matched_number(size, 2),
            removed=_matched_number(size, 3),
            turn=action.turn,
        )
    is_quiet = re.search(r"\s(?:-q|--quiet)\b", action.step.command) or not text.strip()
    if match is None and shell_command.runs("git", "commit") and action.step.state == "ok" and is_quiet:
        yield Commit(subject=_option_text(_COMMIT_MESSAGE, action.step.command)[:_MAX_SUBJECT_LENGTH], turn=action.turn)


def _matched_number(match: re.Match[str] | None, group: int) -> int:
    return int(match[group] or 0) if match else 0


def _option_text(pattern: re.Pattern[str], command: str) -> str:
    match = pattern.search(command[:20_000])
    return next((group.strip() for group in match.groups() if group), "") if match else ""


def find_pull_requests(actions: Iterable[Action]) -> tuple[PullRequest, ...]:
    """Return the created pull requests, by the URLs in the output."""
    by_url: dict[str, PullRequest] = {}
    for action in actions:
        if action.step.state != "ok" or not _creates_pull_request(action):
            continue
        urls = _PULL_REQUEST_URL.findall(action.output_text)
        if urls:
            title = _option_text(_PULL_REQUEST_TITLE, action.step.command)
            by_url.setdefault(urls[-1], PullRequest(url=urls[-1], title=title[:_MAX_SUBJECT_LENGTH], turn=action.turn))
    return tuple(by_url.values())


def _creates_pull_request(action: Action) -> bool:
    shell_command = action.shell_command
    if shell_command is None:
        return action.step.verb.endswith(("create_pull_request", "create_merge_request"))
    return shell_command.runs("gh", "pr", "create") or shell_command.runs("glab", "mr", "create")


def linked_pull_requests(transcript: Transcript, turns: Iterable[Turn]) -> Iterator[PullRequest]:
    """Yield the pull requests that Claude Code linked to the session."""
    starts = [(turn.nodes[0].index, turn.number) for turn in turns if turn.nodes]
    for node in transcript.of_type("pr-link"):
        url: Any = transcript.record(node).fields.get("prUrl")
        if isinstance(url, str) and _PULL_REQUEST_URL.fullmatch(url):
            turns_before = [number for index, number in starts if index <= node.index]
            yield PullRequest(url=url, turn=turns_before[-1] if turns_before else 0)


_API_ERROR: Final = "API"
_CALL_KINDS: Final = frozenset(("tool", "agent", "error"))
_TOOL_USE_ERROR: Final = "<tool_use_error>"
_FailureKey: TypeAlias = tuple[str, frozenset[str]]
_MAX_CHANGED_FILES: Final = 8
_MAX_CHANGES_EXAMINED: Final = 1_000
_MAX_LABEL_LENGTH: Final = 300


class _OpenFailure:
    """A failure without a later success."""

    def __init__(self, action: Action, key: _FailureKey, place: int, changes: int) -> None:
        self.first = self.last = action
        self.place = place
        self.changes = changes
        """Number of file changes before the failure."""
        self.times = 1
        self.verb, self.unresolved = key
        """Programs or subjects that must succeed to resolve the failure."""

    def resolve(self, action: Action, names: frozenset[str]) -> bool:
        """Process a success; return whether the failure is resolved."""
        failed_command, successful_command = self.first.shell_command, action.shell_command
        if failed_command is not None and successful_command is not None and failed_command.runs_tests:
            # A success of fewer tests does not show that the failed tests pass.
            if successful_command.runs_all_tests:
                names |= self.unresolved
            elif not successful_command.selected_tests <= failed_command.selected_tests:
                return False
        self.unresolved -= names
        return not self.unresolved


class _OpenFailures:
    """Failures without a later success, by the names that must succeed."""

    def __init__(self) -> None:
        self._by_name: dict[tuple[str, str], dict[_OpenFailure, None]] = {}
        self.all: dict[_OpenFailure, None] = {}

    def add_failure(self, action: Action, place: int, changes: int) -> None:
        """Add a failure; if it repeats an earlier one, keep only the failing names that both have in common."""
        verb, names = key = _failure_key(action)
        for failure in self._related(verb, names):
            if names <= failure.unresolved or failure.unresolved <= names:
                failure.unresolved &= names
                failure.times, failure.last = failure.times + 1, action
                return
        failure = _OpenFailure(action, key, place, changes)
        self.all[failure] = None
        for name in names:
            self._by_name.setdefault((verb, name), {})[failure] = None

    def resolve_failures(self, action: Action) -> list[_OpenFailure]:
        """Return the failures that a success resolves, and remove them."""
        verb, names = _failure_key(action)
        ran_all_tests = action.shell_command is not None and action.shell_command.runs_all_tests
        related = list(self.all) if ran_all_tests else self._related(verb, names)
        resolved = [failure for failure in related if failure.verb == verb and failure.resolve(action, names)]
        for case in resolved:
            del self.all[case]
        return resolved

    def _related(self, verb: str, names: frozenset[str]) -> list[_OpenFailure]:
        failures = {
            failure: None
            for name in sorted(names)
            for failure in self._by_name.get((verb, name), ())
            if failure in self.all
        }
        return sorted(failures, key=lambda case: case.place)


def find_failures(
    actions: Iterable[Action], project: str, *, api_answered: bool = True
) -> tuple[tuple[Failure, ...], int]:
    """Return the failures in the order of their first occurrence, and the number of minor failures.

    `api_answered` is true if the last turn ended without an API error.
    """
    open_failures = _OpenFailures()
    closed_failures: list[tuple[int, Failure]] = []
    changed_paths: list[str] = []
    last_turn = minor_count = 0
    for place, action in enumerate(actions):
        last_turn = action.turn
        is_call = action.step.kind in _CALL_KINDS
        if _is_minor_failure(action):
            minor_count += 1
        elif is_call and action.final_state == "failed":
            open_failures.add_failure(action, place, len(changed_paths))
        elif is_call and open_failures.all and action.final_state == "ok":
            resolved = open_failures.resolve_failures(action)
            closed_failures += [
                (failure.place, _build_failure(failure, action.turn, changed_paths, project)) for failure in resolved
            ]
        touch = action.step.touch
        if touch is not None and touch.changes and action.step.state == "ok":
            changed_paths.append(relative_to_project(touch.path, project))
    for open_failure in open_failures.all:
        until = last_turn if open_failure.verb == _API_ERROR and api_answered else 0
        closed_failures.append((open_failure.place, _build_failure(open_failure, until, changed_paths, project)))
    return tuple(trouble for _, trouble in sorted(closed_failures, key=lambda pair: pair[0])), minor_count


def _failure_key(action: Action) -> _FailureKey:
    """Return the tool, and the names that must succeed to resolve a failure."""
    step = action.step
    if step.kind == "error":
        return _API_ERROR, frozenset(("",))
    return step.verb, frozenset((step.subject,)) if action.shell_command is None else action.shell_command.purposes


def _is_minor_failure(action: Action) -> bool:
    if action.final_state != "failed":
        return False
    if tool_facts(action.step.verb).minor_failures or (
        action.shell_command is not None and action.shell_command.only_reads
    ):
        return True
    return action.output_text.startswith(_TOOL_USE_ERROR)


def _failure_label(action: Action, project: str) -> str:
    step = action.step
    if step.command:
        return short_command(step.command, project)
    return step.verb if step.kind == "error" else f"{step.verb} {relative_to_project(step.subject, project)}"


def _build_failure(failure: _OpenFailure, resolved_turn: int, changed_paths: list[str], project: str) -> Failure:
    last_action = failure.last
    error_line = (
        last_action.step.subject if last_action.step.kind == "error" else decisive_line(last_action.output_text)
    )
    changes_between = changed_paths[failure.changes : failure.changes + _MAX_CHANGES_EXAMINED] if resolved_turn else []
    return Failure(
        what=_failure_label(failure.first, project)[:_MAX_LABEL_LENGTH],
        said=error_line or last_action.step.outcome,
        times=failure.times,
        solved=bool(resolved_turn),
        after=tuple(dict.fromkeys(changes_between))[:_MAX_CHANGED_FILES],
        turn=failure.first.turn,
        until=resolved_turn,
    )


_PROGRESS_MARK: Final = b'"agent_progress"'


class AgentProgress:
    """Progress records of one sub-agent."""

    def __init__(self, call_id: str, first: int, longest: int) -> None:
        self.call_id = call_id
        self.first = first
        """Index of its first record in the file."""
        self.agent_id = ""
        self.prompt = ""
        self.updates = 0
        self.texts: list[AssistantText] = []
        self.calls: list[ToolCall] = []
        self._longest = longest
        self._seen: set[str] = set()

    def add_record(self, data: dict[str, Any], record: Record) -> None:
        """Add the data of a record."""
        self.updates += 1
        agent_id, prompt = data.get("agentId"), data.get("prompt")
        self.agent_id = self.agent_id or (agent_id if isinstance(agent_id, str) else "")
        self.prompt = self.prompt or (prompt if isinstance(prompt, str) else "")
        outer_message = as_object(data.get("message")) or {}
        message = as_object(outer_message.get("message")) or outer_message
        uuid = outer_message.get("uuid")
        uuid = uuid if isinstance(uuid, str) else ""
        if uuid and uuid in self._seen:
            return
        self._seen.add(uuid)
        timestamp = outer_message.get("timestamp")
        time = read_time(timestamp) if isinstance(timestamp, str) else record.time
        seconds = time.timestamp() if time is not None else None
        is_assistant = "assistant" in (outer_message.get("type"), message.get("role"))
        for block in read_blocks(message.get("content")):
            if isinstance(block, ToolResult):
                self._add_result(block)
            elif is_assistant:
                self._add_block(block, seconds, uuid)

    def _add_block(self, block: Any, time: float | None, uuid: str) -> None:
        order = len(self.texts) + len(self.calls)
        if isinstance(block, ToolUse | ServerToolUse):
            tool_input, cut = shorten_input(block.input, self._longest)
            self.calls.append(
                ToolCall(order=order, id=block.id, tool=block.name, input=tool_input, cut=cut, time=time, uuid=uuid)
            )
        elif isinstance(block, Text) and block.text.strip():
            self.texts.append(AssistantText(order=order, text=block.text, size=len(block.text), time=time, uuid=uuid))

    def _add_result(self, block: ToolResult) -> None:
        state = "failed" if block.is_error else "ok"
        for place, call in enumerate(self.calls):
            if call.id == block.tool_use_id and call.state == "open":
                self.calls[place] = msgspec.structs.replace(call, state=state)


def progress_by_call(transcript: Transcript, longest: int) -> dict[str, AgentProgress]:
    """Return the progress of sub-agents by the call that started them."""
    progress_of_calls: dict[str, AgentProgress] = {}
    for node in transcript.of_type("progress"):
        if _PROGRESS_MARK not in transcript.source.read(node.offset, node.length):
            continue
        record = transcript.record(node)
        value: Any = decode_lenient(record.envelope.data) if record.envelope.data else None
        if not isinstance(value, dict):
            continue
        data = cast("dict[str, Any]", value)
        if data.get("type") != "agent_progress":
            continue
        call_ids = _call_ids(record)
        progress = next((progress_of_calls[call_id] for call_id in call_ids if call_id in progress_of_calls), None)
        progress = progress or AgentProgress(call_ids[0] if call_ids else "", node.index, longest)
        progress.add_record(data, record)
        for name in call_ids or [""]:
            progress_of_calls.setdefault(name, progress)
    return progress_of_calls


def _call_ids(record: Record) -> list[str]:
    """Return the IDs of the call: `parentToolUseID`, and `toolUseID`, which a published description uses instead."""
    values = (record.fields.get(name) for name in ("parentToolUseID", "toolUseID"))
    return [value for value in values if isinstance(value, str) and value]


def subagents_by_turn(
    actions: Iterable[Action],
    unlinked: Iterable[Thread],
    turns: Sequence[Turn],
    positions: TurnPositions,
    progress: Mapping[str, AgentProgress],
    reader: TurnReader,
) -> dict[int, list[Subagent]]:
    """Return the sub-agents by the turn that started them, each before its nested sub-agents.

    `unlinked` are sub-agents without a matching call; they are assigned by start time. Remaining progress is assigned
    by its position in the file.
    """
    agents: dict[int, list[Subagent]] = {}
    collector = _SubagentCollector(progress, reader)
    for action in actions:
        if action.agent or action.step.kind != "agent":
            continue
        turn_agents = agents.setdefault(action.turn, [])
        thread = action.step.agent
        if thread is not None:
            turn_agents += collector.with_descendants(thread)
        elif action.is_call:
            turn_agents.append(_agent_without_records(action, collector.progress_of(action.step.call_id)))
    for thread in unlinked:
        if not thread.warmup and turns:
            agents.setdefault(_turn_of_thread(thread, turns), []).extend(collector.with_descendants(thread))
    for agent_progress in collector.progress_left():
        number = positions.turn_at(agent_progress.first)
        if number is not None:
            agents.setdefault(number, []).append(_agent_without_call(agent_progress))
    return agents


class _SubagentCollector:
    """Collects sub-agents with their nested sub-agents, each once."""

    def __init__(self, progress: Mapping[str, AgentProgress], reader: TurnReader) -> None:
        self._by_call = progress
        self._by_agent = {noted.agent_id: noted for noted in progress.values() if noted.agent_id}
        self._reader = reader
        self._seen: set[int] = set()
        self._used: set[int] = set()

    def with_descendants(self, thread: Thread) -> list[Subagent]:
        """Return a sub-agent and its nested sub-agents, without those already returned."""
        agents: list[Subagent] = []
        for descendant in thread.family():
            if id(descendant) not in self._seen and not descendant.warmup:
                self._seen.add(id(descendant))
                agent_progress = self.progress_of(descendant.call_id, descendant.agent_id)
                agents.append(_agent_with_records(descendant, agent_progress, self._reader))
        return agents

    def progress_of(self, call_id: str, agent_id: str = "") -> AgentProgress | None:
        """Return the progress of a sub-agent, by its call or by its ID."""
        agent_progress = self._by_call.get(call_id) if call_id else None
        agent_progress = agent_progress or (self._by_agent.get(agent_id) if agent_id else None)
        if agent_progress is not None:
            self._used.add(id(agent_progress))
        return agent_progress

    def progress_left(self) -> list[AgentProgress]:
        """Return the progress of sub-agents that has not been used."""
        unique = {id(agent_progress): agent_progress for agent_progress in self._by_call.values()}
        return [noted for name, noted in unique.items() if name not in self._used]


def _agent_without_call(progress: AgentProgress) -> Subagent:
    """Return a sub-agent that has only progress records."""
    return Subagent(
        agent_id=progress.agent_id,
        call_id=progress.call_id,
        prompt=progress.prompt,
        status="unknown",
        source="progress",
        updates=progress.updates,
        texts=tuple(progress.texts),
        calls=tuple(progress.calls),
    )


def _agent_with_records(thread: Thread, progress: AgentProgress | None, reader: TurnReader) -> Subagent:
    texts, calls = reader.read_turns(thread.transcript, thread.turns)
    spawn = thread.spawn
    return Subagent(
        agent_id=thread.agent_id,
        call_id=thread.call_id,
        parent_id=thread.parent.agent_id if thread.parent is not None else "",
        kind=thread.kind,
        task=thread.description,
        prompt=thread.prompt or (spawn.prompt if spawn is not None else ""),
        status=thread.status,
        background=thread.asynchronous,
        source="transcript",
        updates=progress.updates if progress is not None else 0,
        texts=texts,
        calls=calls,
        report=thread.report.strip(),
    )


def _agent_without_records(action: Action, progress: AgentProgress | None) -> Subagent:
    """Return a sub-agent without records, from the call, its result and its progress."""
    step = action.step
    tool_input, client_result = action.tool_input, action.client_result
    prompt, agent_id = tool_input.get("prompt"), client_result.get("agentId")
    if not isinstance(agent_id, str):
        agent_id = progress.agent_id if progress is not None else ""
    return Subagent(
        agent_id=agent_id,
        call_id=step.call_id,
        kind=step.verb,
        task=step.subject,
        prompt=prompt if isinstance(prompt, str) else progress.prompt if progress is not None else "",
        status=action.reported_status,
        background=tool_input.get("run_in_background") is True or client_result.get("isAsync") is True,
        source="progress" if progress is not None else "result",
        updates=progress.updates if progress is not None else 0,
        texts=tuple(progress.texts) if progress is not None else (),
        calls=tuple(progress.calls) if progress is not None else (),
        report=action.reported_text.strip(),
    )


def _turn_of_thread(thread: Thread, turns: Sequence[Turn]) -> int:
    """Return the last turn that started before a sub-agent."""
    started = thread.turns[0].started if thread.turns else None
    number = turns[-1].number
    if started is not None:
        for turn in reversed(turns):
            if turn.started is not None and turn.started <= started:
                return turn.number
        return turns[0].number
    return number
