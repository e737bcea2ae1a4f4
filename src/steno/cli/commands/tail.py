"""`steno tail`: follows live sessions event by event."""

import os
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final

import click
import msgspec

from steno.cli.command_arguments import search_roots
from steno.cli.options import COLOR, JSON, OPTIONAL_SESSION, ROOT_OPTIONS, WIDTH, add_options
from steno.cli.output.screen import Screen, escape_invisible, print_error, write_bytes
from steno.cli.output.transcript import (
    AGENT_STYLES,
    RenderOptions,
    StepRenderer,
    compaction_json,
    compaction_lines,
    prompt_lines,
    prose_lines,
    step_json,
    usage_parts,
    verb_column_width,
)
from steno.errors import NotFound, Unreadable
from steno.format.paths import JSONL_SUFFIX
from steno.report import clock, humanize
from steno.report.session_references import printable_path
from steno.sanitize.terminal import ColourMode, StyledLine, display_width, one_line, truncate
from steno.session.live_turns import Event, RecentTurns
from steno.session.session_status import WAITING_SECONDS
from steno.session.transcript import Transcript
from steno.session.turns.steps import Step
from steno.store import environment
from steno.store.discovery import DiscoveredFile, Discovery
from steno.store.file_source import PathSource
from steno.store.session_lookup import find, resolve_roots, sessions_newest_first, summarize_files
from steno.store.watch.watcher import FollowedFile, MultiTail, SourcedEvent

_RAIL_WIDTH: Final = 6
_ID_LENGTH: Final = 4
_MIN_TITLE_WIDTH: Final = 12
_TURN_ENDINGS: Final = {
    "answered": ("! ", "waiting for input"),
    "asks": ("! ", "waiting for your answer"),
    "interrupted": ("◻ ", "interrupted"),
    "failed": ("✗ ", "failed"),
    "left": ("", "Claude Code was closed"),
}
_SourceKey = tuple[str, str, str]


class _EventContext(msgspec.Struct):
    render_options: RenderOptions
    transcript: Transcript
    is_waiting: bool = True
    is_last: bool = False
    """Whether this is the last text of its turn."""
    is_nested: bool = False


class LiveTranscript:
    """Renders events of several sessions in order, with a heading when the source changes."""

    def __init__(self, options: RenderOptions) -> None:
        self._options = options
        self._verb_column = 6
        self._last_source: _SourceKey | None = None
        self._last_session = ""
        self._last_call = ""
        self._is_after_blank = True
        self._agent_styles: dict[_SourceKey, str] = {}

    def lines(
        self, events: Sequence[SourcedEvent], *, is_history: bool = False, stale_paths: Collection[str] = ()
    ) -> Iterator[StyledLine]:
        """Yield the lines of a batch of events.

        With `is_history`, records are read again from the files; otherwise the followers still hold the
        records. Files in `stale_paths` are not waiting for input.
        """
        transcripts: dict[str, Transcript] = {}
        if is_history:
            renderer = StepRenderer(self._options)
            steps = [sourced.event.step for sourced in events if sourced.event.step is not None]
            self._verb_column = verb_column_width(filter(renderer.is_shown, steps), self._verb_column)
        answered_calls = {
            (each.source.path, each.event.step.call_id)
            for each in events
            if each.event.kind == "outcome" and each.event.step is not None
        }
        last_ends = _last_turn_ends(events)
        for index, each in enumerate(events):
            step = each.event.step
            if each.event.kind == "step" and step is not None and step.state == "open":
                if (each.source.path, step.call_id) in answered_calls:
                    continue
                self._verb_column = verb_column_width([step], self._verb_column)
            transcript = self._transcript_of(each.source, transcripts) if is_history else each.source.follower.pages
            context = _EventContext(self._options, transcript, is_waiting=index in last_ends)
            context.is_waiting = context.is_waiting and each.source.path not in stale_paths
            context.is_last = index + 1 < len(events) and events[index + 1].event.kind == "end"
            for line in self._sourced_event_lines(each, context):
                self._is_after_blank = not line
                yield line

    @staticmethod
    def _transcript_of(speaker: FollowedFile, transcripts: dict[str, Transcript]) -> Transcript:
        if speaker.path not in transcripts:
            try:
                transcripts[speaker.path] = Transcript(PathSource(speaker.path), [], [])
            except Unreadable:
                transcripts[speaker.path] = speaker.follower.pages
        return transcripts[speaker.path]

    def _sourced_event_lines(self, sourced: SourcedEvent, context: _EventContext) -> Iterator[StyledLine]:
        speaker, event = sourced.source, sourced.event
        context.is_nested = bool(speaker.agent_id or event.agent)
        available = self._options.width - (_RAIL_WIDTH if context.is_nested else 0)
        project = speaker.follower.project
        context.render_options = msgspec.structs.replace(self._options, project=project, width=available)
        was_blank, self._is_after_blank = (
            self._is_after_blank,
            self._is_after_blank and speaker.session_id == self._last_session,
        )
        lines = list(self._event_lines(event, context))
        self._is_after_blank = was_blank
        if not lines:
            return
        call = event.step.call_id if event.kind == "step" and event.step is not None else ""
        yield from self._source_label_lines(speaker, event)
        style = self._agent_styles.get(_source_key(speaker, event), "")
        for line in lines:
            yield ["    ", ("│ ", style), *line] if context.is_nested else line
        self._last_call = call

    # Source headings

    def _source_label_lines(self, speaker: FollowedFile, event: Event) -> Iterator[StyledLine]:
        source_key = _source_key(speaker, event)
        if source_key == self._last_source:
            return
        self._last_source, self._last_call = source_key, ""
        if speaker.session_id != self._last_session:
            self._last_session = speaker.session_id
            if not self._is_after_blank:
                yield []
            yield self._session_label(speaker.owner or speaker)
        if source_key[1] or source_key[2]:
            yield self._agent_label(speaker, event, source_key)

    def _session_label(self, speaker: FollowedFile) -> StyledLine:
        follower = speaker.follower
        project = one_line(humanize.project_name(follower.project), 24)
        name = one_line(speaker.session_id[:_ID_LENGTH])
        available = max(self._options.width - display_width(project) - display_width(name) - 6, _MIN_TITLE_WIDTH)
        title = one_line(follower.title or follower.first_prompt or "(no title yet)", available)
        return [("● ", "green"), (name, "bold green"), "  ", (title, "bold"), f"  {project}"]

    def _agent_label(self, speaker: FollowedFile, event: Event, source_key: _SourceKey) -> StyledLine:
        if source_key not in self._agent_styles:
            self._agent_styles[source_key] = AGENT_STYLES[len(self._agent_styles) % len(AGENT_STYLES)]
        agent_task = speaker.agent_brief(event.agent)
        name = one_line(agent_task.kind or "sub-agent", 24)
        first_prompt = speaker.follower.first_prompt if speaker.agent_id else ""
        description = agent_task.description or first_prompt or speaker.agent_id
        available = max(self._options.width - display_width(name) - 8, _MIN_TITLE_WIDTH)
        style = self._agent_styles[source_key]
        description = one_line(description, available)
        return ["    ", ("┌ ", style), (name, f"bold {style}"), "  ", description]

    # Events

    def _event_lines(self, event: Event, context: _EventContext) -> Iterator[StyledLine]:
        match event.kind:
            case "turn":
                yield from self._prompt_event_lines(event, context)
            case "outcome" if event.step is not None:
                yield from self._result_event_lines(event.step, context)
            case "words":
                if context.is_last and not self._is_after_blank:
                    yield []
                for line in prose_lines(event.text, context.render_options):
                    yield ["    ", *line]
            case "seam" if event.compaction is not None:
                yield []
                yield from compaction_lines(event.compaction, context.render_options)
            case "end":
                yield from self._turn_end_lines(event, context)
            case _ if event.step is not None:
                yield from self._step_event_lines(event.step, context)
            case _:
                text = truncate(_problem_text(event), context.render_options.width - 4)
                yield [("  ! ", "yellow"), (text, "yellow")]

    def _prompt_event_lines(self, event: Event, context: _EventContext) -> Iterator[StyledLine]:
        if context.is_nested:
            return
        prompt = event.prompt
        if prompt is not None and prompt.origin == "summary":
            prompt = msgspec.structs.replace(prompt, text=one_line(prompt.text, 200))
        if not self._is_after_blank:
            yield []
        if event.back:
            text = "╌╌ rewound to here; the later turns are abandoned"
            yield [(truncate(text, context.render_options.width), "dim")]
        yield from prompt_lines(prompt, event.turn, event.time, context.render_options)
        yield []

    def _step_event_lines(self, step: Step, context: _EventContext) -> Iterator[StyledLine]:
        renderer = StepRenderer(context.render_options)
        if not renderer.is_shown(step):
            return
        if step.state == "open":
            yield renderer.call_line(step, _narrow_verb_column(self._verb_column, context))
            return
        self._verb_column = verb_column_width([step], self._verb_column)
        column = _narrow_verb_column(self._verb_column, context)
        try:
            yield from list(renderer.step_lines(context.transcript, step, column))
        except Unreadable:
            # The file was replaced; render the step without its records.
            step_without_records = msgspec.structs.replace(step, call=None, result=None)
            yield from renderer.step_lines(context.transcript, step_without_records, column)

    def _result_event_lines(self, step: Step, context: _EventContext) -> Iterator[StyledLine]:
        if not step.call_id or step.call_id != self._last_call:
            yield from self._step_event_lines(step, context)
            return
        renderer = StepRenderer(context.render_options)
        yield renderer.result_line(step)
        try:
            yield from list(renderer.body_lines(context.transcript, step))
        except Unreadable:
            return

    def _turn_end_lines(self, event: Event, context: _EventContext) -> Iterator[StyledLine]:
        ending_mark, text = _TURN_ENDINGS[event.ending]
        if event.ending in ("answered", "asks") and (context.is_nested or not context.is_waiting):
            ending_mark = text = ""
        usage_texts = usage_parts(event.steps, event.duration, event.usage)
        available = context.render_options.width - 6 - display_width(ending_mark + text)
        while len(usage_texts) > 1 and display_width("  ".join(usage_texts)) > available:
            usage_texts.pop()
        if not usage_texts and not text:
            return
        if not self._is_after_blank and not context.is_nested:
            yield []
        style = "red" if event.ending == "failed" else "yellow" if ending_mark else "dim"
        numbers = "  ".join(usage_texts)
        yield ["    ", (numbers, "dim"), "  " if numbers and text else "", (ending_mark + text, style)]


def _narrow_verb_column(column: int, context: _EventContext) -> int:
    """Return the width of the verb column, limited on narrow screens."""
    return min(column, max(context.render_options.width // 5, 6))


def _last_turn_ends(events: Sequence[SourcedEvent]) -> set[int]:
    """Return the index of the last `turn` or `end` event of each file."""
    last: dict[str, int] = {}
    for index, sourced in enumerate(events):
        if sourced.event.kind in ("turn", "end"):
            last[sourced.source.path] = index
    return set(last.values())


def _source_key(speaker: FollowedFile, event: Event) -> _SourceKey:
    return speaker.session_id, speaker.agent_id, event.agent


def _problem_text(event: Event) -> str:
    match event.kind:
        case "damage":
            return f"{humanize.size(event.size)} without a valid record ({event.text})"
        case "anew":
            return "the file was truncated or replaced; reading from the start"
        case _:
            return "the file was deleted"


def event_json(sourced: SourcedEvent) -> dict[str, Any]:
    """Return an event as JSON, without empty fields."""
    speaker, event = sourced.source, sourced.event
    prompt, compaction = event.prompt, event.compaction
    agent_id = event.agent or speaker.agent_id
    agent_task = speaker.agent_brief(event.agent) if agent_id else None
    data: dict[str, Any] = {
        "event": event.kind,
        "session": printable_path(speaker.session_id),
        "path": printable_path(speaker.path),
        "project": speaker.follower.project or None,
        "agent": agent_id or None,
        "agent_type": (agent_task.kind or None) if agent_task else None,
        "agent_description": (agent_task.description or None) if agent_task else None,
        "time": event.time,
        "turn": event.turn or None,
        "prompt": prompt and {"text": prompt.text, "origin": prompt.origin, "images": prompt.images},
        "back": event.back or None,
        "step": event.step and step_json(event.step),
        "text": event.text or None,
        "compaction": compaction and compaction_json(compaction),
    }
    if event.kind == "end":
        data["ending"] = event.ending
        data["steps"] = event.steps
        data["duration"] = event.duration
        data["usage"] = msgspec.to_builtins(event.usage)
    if event.kind == "damage":
        data["size"] = event.size
    return {name: value for name, value in data.items() if value is not None}


class _TailOptions(msgspec.Struct):
    everyone: bool = False
    last: int | None = None
    since: str | None = None
    thinking: bool = False
    notes: bool = False
    as_json: bool = False
    no_follow: bool = False


@click.command("tail", short_help="Follow live sessions.")
@OPTIONAL_SESSION
@click.option("--all", "everyone", is_flag=True, help="Follow all sessions, including new ones")
@click.option("--last", metavar="N", type=click.IntRange(0), help="Start with the last N turns  [default: 1]")
@click.option("--since", metavar="WHEN", help="Start with the turns since WHEN: 10m, 3h, today")
@click.option("--thinking", is_flag=True, help="Show thinking in full")
@click.option("--notes", is_flag=True, help="Include notes, hooks and long output")
@click.option("-n", "--no-follow", is_flag=True, help="Print existing turns and exit")
@add_options(ROOT_OPTIONS, JSON)
@WIDTH
@add_options(COLOR)
def command(
    name: str | None, root: tuple[str, ...], color: ColourMode, width: int | None, *, demo: bool, **values: Any
) -> None:
    """Follow a live session: prompts, steps, results, answers and sub-agents.

    SESSION is a path, an ID, the first characters of an ID, a title or part of it, or `last`.
    Without SESSION, follows the newest session of the current directory, or else the newest of all.

    Starts with the last turn and follows until Ctrl-C. --json prints one line per event.
    """
    command_options = _TailOptions(**values)
    if name and command_options.everyone:
        raise click.UsageError("--all cannot be combined with SESSION")
    if command_options.last is not None and command_options.since is not None:
        raise click.UsageError("--last cannot be combined with --since")
    folders = search_roots(root, demo=demo)
    source = (
        _AllSessionsSource(folders, command_options)
        if command_options.everyone
        else _SingleSessionSource(_selected_file(name, folders), command_options)
    )
    reporter = (
        _JsonTailReporter() if command_options.as_json else _TextTailReporter(Screen(color, width), command_options)
    )
    try:
        _follow_source(source, reporter, command_options)
    except KeyboardInterrupt:
        return


def _selected_file(name: str | None, folders: tuple[str, ...] | None) -> DiscoveredFile:
    file = find(name, folders) if name else _newest_in_cwd(folders) or find("last", folders)
    if not os.path.exists(file.path):
        raise NotFound(f"{os.path.basename(file.path)} is no longer on disk")
    return file


def _newest_in_cwd(folders: tuple[str, ...] | None) -> DiscoveredFile | None:
    """Return the newest session of a project that contains the current directory."""
    cwd = os.getcwd()
    for file, summary in summarize_files(sessions_newest_first(folders)):
        project = summary.project
        is_inside = project and (cwd + os.sep).startswith(project.rstrip(os.sep) + os.sep)
        if is_inside and not summary.hidden and os.path.exists(file.path):
            return file
    return None


def _follow_source(
    source: "_SingleSessionSource | _AllSessionsSource",
    reporter: "_TextTailReporter | _JsonTailReporter",
    options: _TailOptions,
) -> None:
    if options.no_follow:
        reporter.print_history(source.initial_events())
        return
    from steno.store.watch.watcher import FileWatcher

    has_started = False
    with FileWatcher(source.roots) as watch:
        for changes in watch:
            if not has_started:
                has_started = True
                reporter.print_history(source.initial_events())
                reporter.print_watching(source.description)
                if watch.polling_reason:
                    print_error("cannot watch files; checking every 2 s", watch.polling_reason)
                continue
            paths = set(changes.paths)
            if changes.rescan:
                paths.update(source.files_to_scan())
            for events in source.multi_tail.read_changes(paths):
                reporter.print_new(events)


class _SingleSessionSource:
    def __init__(self, file: DiscoveredFile, options: _TailOptions) -> None:
        self._file = file
        self._options = options
        self.multi_tail = MultiTail(file.path)
        self.description = ""

    @property
    def roots(self) -> tuple[str, ...]:
        """Paths to watch: the project directory, or only the file if it is outside of one."""
        path = self._file.path
        if self._file.place.slug:
            return (os.path.dirname(path) or os.curdir,)
        return path, path.removesuffix(JSONL_SUFFIX)

    def initial_events(self) -> list[SourcedEvent]:
        """Return the last turns."""
        file = self._file
        events = self.multi_tail.start_with_recent(file, _recent_turns(self._options))
        agents = [] if file.place.role == "agent" else self.multi_tail.agents(file)
        return _merge_by_time(events, *(self._agent_events(agent, events) for agent in agents))

    def _agent_events(self, file: DiscoveredFile, events: Sequence[SourcedEvent]) -> list[SourcedEvent]:
        """Return the events of a sub-agent since the earliest of `events`."""
        event_times = [event_item.event.time for event_item in events if event_item.event.time is not None]
        if not event_times:
            self.multi_tail.ignore(file)
            return []
        return self.multi_tail.start_with_recent(file, RecentTurns(since=min(event_times).timestamp()))

    def files_to_scan(self) -> Iterator[str]:
        """Yield the files to read when the changed paths are unknown."""
        yield self._file.path
        try:
            yield from (agent.path for agent in self.multi_tail.agents(self._file))
        except Unreadable:
            return


class _AllSessionsSource:
    def __init__(self, folders: tuple[str, ...] | None, options: _TailOptions) -> None:
        self.roots = resolve_roots(folders)
        self._options = options
        self.multi_tail = MultiTail()
        self.description = ""

    def initial_events(self) -> list[SourcedEvent]:
        """Return the last turns of live sessions, or of sessions written since --since."""
        now = environment.now()
        since = clock.parse_time_range(self._options.since, now)[0] if self._options.since else now - WAITING_SECONDS
        files = list(self._transcripts())
        for file in files:
            self.multi_tail.ignore(file)
        recent = [found for found in files if found.mtime_ns >= since * 1e9]
        session_events = _merge_by_time(
            *(
                self.multi_tail.start_with_recent(found, _recent_turns(self._options))
                for found in recent
                if found.place.role != "agent"
            )
        )
        first_event = min(
            (agent_file.event.time for agent_file in session_events if agent_file.event.time), default=None
        )
        agents = [found for found in recent if first_event and found.place.role == "agent"]
        first_time = first_event.timestamp() if first_event else 0.0
        self.description = f"Watching {humanize.count(len(files), 'file')}"
        return _merge_by_time(
            session_events, *(self.multi_tail.start_with_recent(each, RecentTurns(since=first_time)) for each in agents)
        )

    def files_to_scan(self) -> Iterator[str]:
        """Yield the files to read when the changed paths are unknown."""
        return (file.path for file in self._transcripts() if self.multi_tail.has_changes(file))

    def _transcripts(self) -> Iterator[DiscoveredFile]:
        for root in self.roots:
            yield from Discovery(root).transcripts()


def _recent_turns(options: _TailOptions) -> RecentTurns:
    if options.since is not None:
        return RecentTurns(since=clock.parse_time_range(options.since, environment.now())[0])
    return RecentTurns(1 if options.last is None else options.last)


def _merge_by_time(*event_lists: Iterable[SourcedEvent]) -> list[SourcedEvent]:
    """Merge events of several files by time; the order within a file is kept."""
    timed: list[tuple[float, SourcedEvent]] = []
    for events_of_source in event_lists:
        latest = 0.0
        for event_item in events_of_source:
            if event_item.event.time is not None:
                latest = max(latest, event_item.event.time.timestamp())
            timed.append((latest, event_item))
    timed.sort(key=_event_time_key)
    return [each for _, each in timed]


def _event_time_key(timed: tuple[float, SourcedEvent]) -> float:
    return timed[0]


def _seconds_since_write(path: str, now: float) -> float:
    try:
        return now - os.stat(path).st_mtime
    except OSError:
        return float("inf")


class _TextTailReporter:
    def __init__(self, screen: Screen, options: _TailOptions) -> None:
        from steno.cli.output.transcript import RenderOptions

        self._screen = screen
        render_options = RenderOptions(
            width=screen.width, thinking=options.thinking, show_all=options.notes, unicode=screen.styler.unicode
        )
        self._transcript = LiveTranscript(render_options)

    def print_history(self, events: list[SourcedEvent]) -> None:
        """Print the existing events."""
        now = environment.now()
        stale_paths = {
            path
            for path in {event_item.source.path for event_item in events}
            if _seconds_since_write(path, now) > WAITING_SECONDS
        }
        self._screen.print_lines(self._transcript.lines(events, is_history=True, stale_paths=stale_paths))
        sys.stdout.flush()

    def print_watching(self, description: str) -> None:
        """Print on terminals what is being watched."""
        if self._screen.is_terminal and description:
            self._screen.print_lines([[(f"{description}. Press Ctrl-C to stop.", "dim")]])
            sys.stdout.flush()

    def print_new(self, events: list[SourcedEvent]) -> None:
        """Print new events."""
        self._screen.print_lines(self._transcript.lines(events))
        sys.stdout.flush()


class _JsonTailReporter:
    """Prints one JSON line per event."""

    def print_history(self, events: list[SourcedEvent]) -> None:
        """Print the existing events."""
        self.print_new(events)

    def print_watching(self, description: str) -> None:
        """Print the `watching` event: existing events are complete, new ones follow."""
        _ = description
        write_bytes(b'{"event":"watching"}\n')
        sys.stdout.buffer.flush()

    def print_new(self, events: list[SourcedEvent]) -> None:
        """Print events and flush."""
        from steno.format.encode import encode_line

        for event_item in events:
            write_bytes(escape_invisible(encode_line(msgspec.to_builtins(event_json(event_item)))))
        sys.stdout.buffer.flush()
