"""Reads the content of each turn: texts, calls, backups, compactions, queue operations, decisions.

Claude Code backs up a file immediately before its first change, and every prompt takes a snapshot in which a file that
differs from its last backup gets a new version. A first backup therefore means that the file was changed in that turn.
A new version in a prompt's snapshot means that the file was changed before that prompt.

Decisions are plans, answers, denials, and sentences with phrases that state a choice, in several languages. The list of
phrases is short on purpose: missing a decision is better than reporting a sentence that states none.
"""

import re
from bisect import bisect_left
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, cast

import msgspec

from steno.format.lenient_json import as_list, as_object, decode_lenient
from steno.format.message import SYNTHETIC, ServerToolUse, Text, ToolUse, read_blocks
from steno.format.records import Record
from steno.format.sidecars import (
    BACKUP_TYPES,
    BackupEntry,
    absolute_path,
    backup_fingerprint,
    is_snapshot_update,
    message_id_of,
    read_backups,
    snapshot_time,
)
from steno.index.line_decoder import to_millis
from steno.report.actions.action import Action
from steno.report.brief.brief_document import (
    AssistantText,
    BackupChange,
    ContextCompaction,
    Decision,
    FileBackup,
    QueueOperation,
    ToolCall,
)
from steno.report.brief.brief_reduction import KEPT_INPUT_LENGTH, shorten_input
from steno.report.clock import seconds_from_ms, timestamp_of
from steno.report.humanize import relative_to_project
from steno.session.session import Session
from steno.session.transcript import Node, Transcript
from steno.session.turns.compactions import Compaction, summary_text
from steno.session.turns.steps import Step, one_line
from steno.session.turns.turn_builder import Turn


class TurnPositions:
    """Assigns records to turns: by the message they refer to, or by their position in the file."""

    def __init__(self, transcript: Transcript, turns: Sequence[Turn]) -> None:
        self.first = turns[0].number if turns else None
        """Number of the first turn."""
        self._by_uuid = transcript.by_uuid
        self._numbers = {node.index: turn.number for turn in turns for node in turn.nodes}
        self._indexes = sorted(self._numbers)
        self._prompts = {turn.prompt.node.index: turn for turn in turns if turn.prompt is not None}

    def turn_of_message(self, uuid: str, node: Node) -> int | None:
        """Return the turn of a record that refers to a message.

        None if the message is not part of the conversation, for example on an abandoned branch.
        """
        named_node = self._by_uuid.get(uuid) if uuid else None
        if named_node is None or named_node.sidechain:
            return self.turn_at(node.index)
        return self._numbers.get(named_node.index)

    def turn_at(self, index: int) -> int | None:
        """Return the turn of the last record before a position; the first turn if there is no such record."""
        if not self._indexes:
            return None
        place = bisect_left(self._indexes, index + 1) - 1
        return self._numbers[self._indexes[max(0, place)]]

    def turn_started_after(self, index: int) -> Turn | None:
        """Return the turn whose prompt is the next record of the conversation after a position."""
        place = bisect_left(self._indexes, index + 1)
        if place == len(self._indexes):
            return None
        return self._prompts.get(self._indexes[place])


_SNAPSHOT_TOLERANCE: Final = 60_000
"""Maximum milliseconds between a snapshot and the backups made for it."""


def backups_by_turn(
    transcript: Transcript, positions: TurnPositions, project: str, session_start: float | None
) -> dict[int, list[FileBackup]]:
    """Return the new backups by turn number, in file order.

    `session_start` is the time of the first record: earlier backups are not changes of this session.
    """
    first_millis = None if session_start is None else round(session_start * 1000)
    last_backups: dict[str, str] = {}
    backups: dict[int, list[FileBackup]] = {}
    for node in transcript.nodes:
        if node.type not in BACKUP_TYPES:
            continue
        fields = transcript.record(node).fields
        number = positions.turn_of_message(message_id_of(fields), node)
        is_update_, snapshot_millis = is_snapshot_update(fields), to_millis(snapshot_time(fields))
        for entry in read_backups(fields):
            path = relative_to_project(absolute_path(entry, project), project)
            change = _backup_change(entry, last_backups.get(path), snapshot_millis, first_millis, update=is_update_)
            if change == "before_turn" and path not in last_backups and number == positions.first:
                change = "earlier"
            last_backups[path] = backup_fingerprint(entry)
            if change is None or number is None:
                continue
            backup = _file_backup(entry, path, change, snapshot_millis)
            backups.setdefault(number, []).append(backup)
    return backups


def _backup_change(
    entry: BackupEntry, last_backup: str | None, snapshot_millis: int | None, first_millis: int | None, *, update: bool
) -> BackupChange | None:
    """Return the time of the change (see `BackupChange`); None if the backup is not new."""
    if last_backup is not None:
        if last_backup == backup_fingerprint(entry):
            return None
        return "in_turn" if update else "before_turn"
    if update:
        return "in_turn"
    # A first backup is made at any time during a turn, all others with the snapshot.
    is_first = (entry.version or 1) <= 1
    backup_millis, limit = to_millis(entry.time), first_millis if is_first else snapshot_millis
    if backup_millis is not None and limit is not None and backup_millis < limit - _SNAPSHOT_TOLERANCE:
        return "earlier"
    return "in_turn" if is_first else "before_turn"


def _file_backup(entry: BackupEntry, path: str, change: BackupChange, snapshot_millis: int | None) -> FileBackup:
    backup_millis = to_millis(entry.time)
    backup_millis = snapshot_millis if backup_millis is None else backup_millis
    return FileBackup(
        path=path,
        change=change,
        version=entry.version,
        backup_file=entry.file_name,
        existed=not entry.missing,
        size=None if entry.content is None else len(entry.content),
        time=seconds_from_ms(backup_millis),
    )


def mark_backups_by_call(
    backups: dict[int, list[FileBackup]], changed_paths: Collection[str]
) -> tuple[dict[int, list[FileBackup]], dict[str, None]]:
    """Return the backups with `by_call` set, and the files that no call changed.

    `changed_paths` are the files changed by file tools, in the form of the backup paths.
    """
    marked = {
        number: [msgspec.structs.replace(backup, by_call=backup.path in changed_paths) for backup in turn_backups]
        for number, turn_backups in backups.items()
    }
    all_backups: Sequence[FileBackup] = [each for number in sorted(marked) for each in marked[number]]
    unchanged_by_calls = {each.path: None for each in all_backups if not each.by_call and each.change != "earlier"}
    return marked, unchanged_by_calls


_MAX_EXACT_INTEGER: Final = 1 << 53
_APPLIED_EDITS_MARK: Final = b'"applied_edits"'


def compactions_by_turn(
    session: Session, turns: Sequence[Turn], positions: TurnPositions
) -> dict[int, list[ContextCompaction]]:
    """Return the compactions by turn number, in the order of the conversation."""
    compactions: dict[int, list[ContextCompaction]] = {}
    for compaction in session.compactions:
        number = positions.turn_of_message(compaction.boundary.uuid or "", compaction.boundary)
        if number is not None:
            compactions.setdefault(number, []).append(_recorded_compaction(session.transcript, compaction))
    for turn in turns:
        api_compactions = list(_api_compactions(session.transcript, turn))
        if api_compactions:
            compactions.setdefault(turn.number, []).extend(api_compactions)
    return compactions


def _recorded_compaction(transcript: Transcript, compaction: Compaction) -> ContextCompaction:
    """Return a compaction that has a boundary record."""
    record = transcript.record(compaction.boundary)
    is_micro = compaction.kind == "micro"
    metadata = as_object(record.fields.get("microcompactMetadata" if is_micro else "compactMetadata"))
    metadata = metadata or {}
    ids = as_list(metadata.get("compactedToolIds"))
    attachments = as_list(metadata.get("clearedAttachmentUUIDs"))
    before, after = (_positive_integer(compaction.pre_tokens), _positive_integer(compaction.post_tokens))
    saved = _positive_integer(metadata.get("tokensSaved"))
    if saved is None and before is not None and after is not None:
        saved = max(0, before - after)
    return ContextCompaction(
        kind=compaction.kind,
        trigger=compaction.trigger,
        pre_tokens=before,
        post_tokens=after,
        tokens_saved=saved,
        compacted_tool_ids=tuple(call_id for call_id in ids or () if isinstance(call_id, str)),
        results_removed=None if ids is None else len(ids),
        attachments_removed=len(attachments) if attachments else None,
        summary="" if is_micro else summary_text(transcript, compaction).strip(),
        time=record.time.timestamp() if record.time is not None else None,
        uuid=compaction.boundary.uuid or "",
    )


def _api_compactions(transcript: Transcript, turn: Turn) -> list[ContextCompaction]:
    """Return the context edits that the API reports, once per response."""
    unique_compactions: dict[str, ContextCompaction] = {}
    for node in turn.nodes:
        if node.type != "assistant":
            continue
        record = transcript.record(node)
        if _APPLIED_EDITS_MARK in record.line:
            message_id = node.message_id or node.uuid or ""
            for compaction in _compactions_in_record(record):
                unique_compactions.setdefault(
                    f"{message_id} {compaction.results_removed} {compaction.tokens_saved}", compaction
                )
    return list(unique_compactions.values())


def _compactions_in_record(record: Record) -> list[ContextCompaction]:
    message = as_object(record.fields.get("message")) or {}
    managed = as_object(message.get("context_management")) or {}
    edits = [as_object(edit) or {} for edit in as_list(managed.get("applied_edits")) or []]
    return [
        ContextCompaction(
            kind="micro",
            trigger="api",
            tokens_saved=_positive_integer(each.get("cleared_input_tokens")),
            results_removed=_positive_integer(each.get("cleared_tool_uses")),
            time=record.time.timestamp() if record.time is not None else None,
            uuid=record.uuid or "",
        )
        for each in edits
        if _positive_integer(each.get("cleared_input_tokens"))
    ]


def _positive_integer(value: Any) -> int | None:
    return int(value) if value.__class__ in (int, float) and 0 <= value < _MAX_EXACT_INTEGER else None


_MAX_QUEUE_LOOKAHEAD: Final = 100
"""Maximum number of queue entries searched for the prompt of a turn."""


def queue_by_turn(transcript: Transcript, positions: TurnPositions) -> dict[int, list[QueueOperation]]:
    """Return the queue operations by turn number, in file order.

    A prompt that leaves the queue and starts a turn belongs to that turn, also if it entered the queue just before.
    """
    waiting: deque[str] = deque()
    operations: dict[int, list[QueueOperation]] = {}
    for node in transcript.of_type("queue-operation"):
        record = transcript.record(node)
        operation = _queue_operation(record)
        content = operation.content
        next_turn = positions.turn_started_after(node.index)
        match operation.operation:
            case "enqueue":
                waiting.append(content)
            case "popAll":
                waiting.clear()
            case "dequeue" | "remove" | "complete" if content in waiting:
                waiting.remove(content)
            case "dequeue" | "remove" if waiting:
                # Prompts overtake notifications: the prompt of the next turn has just left the queue.
                queue_front = islice(waiting, _MAX_QUEUE_LOOKAHEAD if next_turn is not None else 0)
                content = next(
                    (candidate for candidate in queue_front if _starts_turn(next_turn, candidate)), waiting[0]
                )
                waiting.remove(content)
            case _:
                pass
        if next_turn is not None and _starts_turn(next_turn, content):
            number = next_turn.number
        else:
            number = positions.turn_at(node.index)
        if number is not None:
            operations.setdefault(number, []).append(operation)
    return operations


def _starts_turn(turn: Turn | None, content: str) -> bool:
    """Return whether a turn starts with a queue entry; the prompt contains only a part of a notification."""
    prompt = turn.prompt.text.strip() if turn is not None and turn.prompt is not None else ""
    content = content.strip()
    return bool(prompt) and (content == prompt or (content.startswith("<") and prompt in content))


def _queue_operation(record: Record) -> QueueOperation:
    envelope = record.envelope
    content: Any = decode_lenient(envelope.content) if envelope.content else ""
    reason: Any = record.fields.get("reason")
    text = "\n\n".join(part.text for part in read_blocks(content) if isinstance(part, Text))
    return QueueOperation(
        operation=envelope.operation or "",
        content=text,
        size=len(text),
        reason=reason if isinstance(reason, str) else "",
        time=record.time.timestamp() if record.time is not None else None,
    )


_UNLIMITED: Final = 1 << 62
_BEFORE_PROMPT: Final = -1


class TurnRows(msgspec.Struct, frozen=True):
    """Texts and calls of a turn."""

    texts: tuple[AssistantText, ...]
    calls: tuple[ToolCall, ...]
    orders: dict[str, int]
    """Position of each record among the texts and calls, by record ID; -1 if it is before the prompt."""


class TurnReader:
    """Reads the records of turns for content that steps do not include."""

    def __init__(self, *, full: bool) -> None:
        self.longest = _UNLIMITED if full else KEPT_INPUT_LENGTH
        """Maximum characters of a call parameter."""

    def read_turn(self, transcript: Transcript, turn: Turn, first: int = 0) -> TurnRows:
        """Return the texts and calls of a turn; `first` is the order of the first."""
        texts: list[AssistantText] = []
        calls: list[ToolCall] = []
        orders: dict[str, int] = {}
        steps = _steps_by_call(turn.steps)
        after_prompt = turn.prompt is None
        repeated_id = ""
        for node in turn.nodes:
            after_prompt = after_prompt or (turn.prompt is not None and node is turn.prompt.node)
            if node.uuid:
                orders[node.uuid] = first + len(texts) + len(calls) if after_prompt else _BEFORE_PROMPT
            if node.type != "assistant":
                continue
            if node.message_id and node.message_id in (repeated_id, f"msg_{node.parent}"):
                # After a compaction, steno's copy of the last turn has message IDs of this form.
                repeated_id = node.message_id
                continue
            record = transcript.record(node)
            synthetic = node.model == SYNTHETIC or bool(record.envelope.is_api_error_message)
            time = timestamp_of(record.time)
            for block in record.blocks:
                order = first + len(texts) + len(calls)
                if isinstance(block, ToolUse | ServerToolUse):
                    step = steps.get(block.id or f"@{node.index}")
                    calls.append(self._call(order, block, step, time, node.uuid or ""))
                elif isinstance(block, Text) and block.text.strip():
                    texts.append(
                        AssistantText(
                            order=order,
                            text=block.text,
                            size=len(block.text),
                            synthetic=synthetic,
                            time=time,
                            uuid=node.uuid or "",
                        )
                    )
        return TurnRows(tuple(_mark_final(texts, turn.answer)), tuple(calls), orders)

    def queued_messages(self, transcript: Transcript, turn: Turn) -> tuple[str, ...]:
        """Return the full texts of queued prompts; steps contain only their first lines."""
        steps = (step for step in turn.steps if step.kind == "queued")
        return tuple(_queued_text(transcript, step) for step in steps)

    def read_turns(
        self, transcript: Transcript, turns: Iterable[Turn]
    ) -> tuple[tuple[AssistantText, ...], tuple[ToolCall, ...]]:
        """Return the texts and calls of several turns as one sequence."""
        texts: list[AssistantText] = []
        calls: list[ToolCall] = []
        for turn in turns:
            rows = self.read_turn(transcript, turn, len(texts) + len(calls))
            texts += rows.texts
            calls += rows.calls
        return tuple(texts), tuple(calls)

    def _call(
        self, order: int, block: ToolUse | ServerToolUse, step: Step | None, time: float | None, uuid: str
    ) -> ToolCall:
        tool_input, cut = shorten_input(block.input, self.longest)
        return ToolCall(
            order=order,
            id=block.id,
            tool=block.name,
            input=tool_input,
            cut=cut,
            state=step.state if step is not None else "open",
            outcome=step.outcome if step is not None else "",
            seconds=step.duration if step is not None else None,
            time=time,
            uuid=uuid,
        )


def _queued_text(transcript: Transcript, step: Step) -> str:
    if step.call is None:
        return step.subject
    record = transcript.record(step.call)
    value: Any = record.envelope.content or record.envelope.attachment
    value = decode_lenient(value) if value else None
    if isinstance(value, dict):
        value = cast("dict[str, Any]", value).get("prompt")
    blocks = record.blocks if record.role else read_blocks(value)
    texts = [block.text for block in blocks if isinstance(block, Text)]
    # A record may contain several texts; the step refers to one of them.
    matching_text = next((text for text in texts if one_line(text) == step.subject), "")
    return (matching_text or "\n\n".join(texts) or step.subject).strip()


def _steps_by_call(steps: Iterable[Step]) -> dict[str, Step]:
    steps_by_id: dict[str, Step] = {}
    for step in steps:
        if step.call is not None and step.call.type == "assistant":
            steps_by_id.setdefault(step.call_id or f"@{step.call.index}", step)
    return steps_by_id


def _mark_final(texts: list[AssistantText], answer: str) -> Iterator[AssistantText]:
    """Yield the texts, and mark the texts that form the answer as final."""
    model_texts = [place for place, text_ in enumerate(texts) if not text_.synthetic]
    final: set[int] = set()
    remaining = answer
    for place in reversed(model_texts):
        text = texts[place].text
        if not remaining or not remaining.endswith(text):
            break
        final.add(place)
        remaining = remaining[: -len(text)].removesuffix("\n\n")
    for place, each in enumerate(texts):
        yield msgspec.structs.replace(each, final=place in final)


_DECISION_PATTERNS: Final = {
    "en": (
        r"\b(?:I|we)(?:'ve| have)? (?:decided|chose|opted|settled on|went with|agreed)\b",
        r"\b(?:I'll|we'll|I will|we will|let's|I'm going to|I am going to|going to) (?:go|stick|stay) with\b",
        r"\b(?:decided|opted) (?:to|on|for|against|not to)\b",
        r"^(?:the )?decision\b[^:]{0,40}:",
        r"\b(?:the )?root cause (?:is|was)\b",
        (
            r"\b(?:best|right|better|simplest|cleanest|safest|correct) (?:approach|fix|solution|option|choice|way)"
            r"(?: here)? (?:is|was|would be)\b"
        ),
        r"\b(?:I|we)(?:'ll|'ve|'m| will| have| am| are)? \w+(?: \w+){0,8}? (?:instead of|rather than)\b",
        (
            r"\b(?:I'll|we'll|I will|we will) (?:use|keep|leave|skip|drop|avoid|add|put|make)\b[^.]{3,200}?"
            r"\b(?:because|since|so that|to avoid)\b"
        ),
        r"\b(?:I|we)(?:'ve| have)? (?:deliberately|intentionally)\b",
    ),
    "de": (
        r"\b(?:ich habe mich|wir haben uns)\b[^.]{3,160}\bentschieden\b",
        (
            r"\b(?:ich|wir) (?:nehme|verwende|behalte|lasse|bleibe)n?\b[^.]{3,200}"
            r"\b(?:statt|anstatt|anstelle|weil|damit)\b"
        ),
        r"^(?:die )?entscheidung\b[^:]{0,40}:",
        r"\bdie (?:eigentliche )?ursache (?:ist|war|liegt)\b",
    ),
    "fr": (
        r"\b(?:j'ai|nous avons|on a) (?:décidé|choisi|opté)\b",
        (
            r"\b(?:je vais|nous allons|on va) (?:utiliser|garder|conserver|laisser|partir sur)\b[^.]{3,200}"
            r"\b(?:plutôt que|au lieu de|car|parce que|afin de)\b"
        ),
        r"^(?:la )?décision\b[^:]{0,40}:",
        r"\bla cause (?:racine|première|profonde|réelle) (?:est|était)\b",
    ),
    "es": (
        r"\b(?:he|hemos) (?:decidido|elegido|optado)\b|\b(?:decidí|decidimos|elegí|elegimos|opté|optamos)\b",
        (
            r"\b(?:voy a|vamos a) (?:usar|utilizar|mantener|dejar)\b[^.]{3,200}"
            r"\b(?:en lugar de|en vez de|porque|ya que|para evitar)\b"
        ),
        r"^(?:la )?decisión\b[^:]{0,40}:",
        r"\bla causa (?:raíz|principal) (?:es|era|fue)\b",
    ),
    "pt": (
        r"\b(?:decidi|decidimos|escolhi|escolhemos|optei|optamos)\b",
        (
            r"\b(?:vou|vamos) (?:usar|utilizar|manter|deixar)\b[^.]{3,200}"
            r"\b(?:em vez de|ao invés de|porque|pois|para evitar)\b"
        ),
        r"^(?:a )?decisão\b[^:]{0,40}:",
        r"\ba causa raiz (?:é|era|foi)\b",
    ),
    "it": (
        r"\b(?:ho|abbiamo) (?:deciso|scelto|optato)\b",
        (
            r"\b(?:userò|useremo|terrò|terremo|manterrò|lascio|lasciamo)\b[^.]{3,200}"
            r"\b(?:invece di|anziché|perché|per evitare)\b"
        ),
        r"^(?:la )?decisione\b[^:]{0,40}:",
        r"\bla causa (?:principale|radice|vera) (?:è|era)\b",
    ),
    "nl": (
        r"\b(?:ik heb|we hebben|wij hebben)\b[^.]{0,80}\b(?:besloten|gekozen)\b",
        r"^(?:het )?besluit\b[^:]{0,40}:",
        r"\bde (?:eigenlijke )?oorzaak (?:is|was|ligt)\b",
    ),
    "ru": (
        r"\b(?:я|мы) (?:решил|решила|решили|выбрал|выбрала|выбрали)\b",
        r"\b(?:первопричина|корневая причина|причина проблемы)\b",
    ),
    "zh": (
        r"(?:我|我们|我們)?(?:决定|決定|选择|選擇)(?:使用|采用|採用|保留|不|改|用|将|將|先)",
        r"^(?:决定|決定)[:\uff1a]",
        r"(?:根本原因|根因)(?:是|在于|在於)",
        r"(?:我|我们|我們)(?:会|會|将|將)(?:使用|采用|採用|保留)[^。]{2,120}(?:而不是|因为|因為)",
    ),
    "ja": (
        r"ことに(?:しました|決めました|します|した)",
        r"を(?:採用|選択)(?:しました|します)",
        r"^(?:決定|方針)[:\uff1a]",
        r"(?:根本)?原因は[^。]{2,120}(?:です|でした|だった)",
    ),
    "ko": (r"기로 (?:했습니다|결정했습니다|하겠습니다|했다)", r"^결정[:\uff1a]", r"근본 원인은"),
}
DECISION_PHRASES: Final = re.compile(
    "|".join(each for cues in _DECISION_PATTERNS.values() for each in cues), re.IGNORECASE
)
_UNCERTAINTY_PATTERNS: Final = (
    r"[?\uff1f]\s*$",
    r"\b(?:if you|would you|do you|should we|should I|let me|could|might|maybe|perhaps)\b",
    r"\b(?:wenn du|wenn sie|möchtest du|möchten sie|soll ich|sollen wir|vielleicht|könnten?)\b",
    r"\b(?:si vous|si tu|voulez-vous|veux-tu|peut-être|pourrai[st]|pourrait)\b",
    r"\b(?:si quieres|si prefieres|tal vez|quizás?|podría)\b|\b(?:se você|se quiser|talvez|poderia)\b",
    r"\b(?:se vuoi|se preferisci|forse|potrebbe)\b|\b(?:als je|misschien|zou kunnen)\b",
    r"\b(?:если|возможно|может быть)\b",
    r"如果|也许|也許|或许|或許|可能|要不要|吗[。\uff1f]?$|嗎[。\uff1f]?$",
    r"もし|かもしれ|でしょうか|ますか|만약|아마|까요",
)
UNCERTAINTY: Final = re.compile("|".join(_UNCERTAINTY_PATTERNS), re.IGNORECASE)
SENTENCE_ENDS: Final = re.compile(r"(?<=[.!?])\s+(?=[A-ZÀ-ÖØ-ÞА-ЯЁ`\"'(*¿¡«„])|(?<=[。\uff01\uff1f])\s*")
COURTESY_QUESTION: Final = re.compile(
    r"(?:how (?:can|may) I help|what (?:would you like|can I (?:do|help)|should I)|(?:is there )?anything"
    r" else|how would you like|(?:kann ich|soll ich) (?:\w+ )?(?:sonst|noch etwas)|(?:was|wie) (?:kann|soll)"
    r" ich|(?:autre chose|puis-je (?:vous|t')|que (?:puis-je|souhaitez))|(?:algo más|en qué puedo|qué más)"
    r"|(?:mais alguma|como posso)|(?:altro|come posso|posso aiutar)|(?:kan ik (?:verder|nog)|nog iets)"
    r"|(?:чем (?:ещё|еще|могу)|что-нибудь ещё))\b|(?:还有|還有|还需要|還需要|有什么|有什麼)|(?:他に|ほかに|何か)|더 (?:도와|필요)",
    re.IGNORECASE,
)
_QUESTION_END: Final = re.compile(r"[?\uff1f؟]$|(?:ますか|ですか|でしょうか|까요|나요)[。.]?$")


def is_question(sentence: str) -> bool:
    """Return whether a sentence is a question.

    >>> is_question("Soll ich das einspielen?"), is_question("進めてもよろしいでしょうか。"), is_question("Done.")
    (True, True, False)
    """
    return bool(_QUESTION_END.search(sentence))


_CODE_BLOCK: Final = re.compile(r"^(`{3,}|~{3,}).*?(?:^\1|\Z)", re.DOTALL | re.MULTILINE)
_MARKDOWN_MARKS: Final = re.compile(r"^\s*(?:[#>]+|[-*+]|\d+[.)])\s+|\*\*|__")
_MIN_SENTENCE_BYTES: Final = 25
"""Minimum length in bytes, not in characters, because a Chinese character carries more meaning than a Latin letter."""
_MAX_SENTENCE_LENGTH: Final = 320
_MAX_PER_TURN: Final = 3
"""Maximum number of stated decisions per turn; those in the answer come first."""
_MAX_PLAN_LENGTH: Final = 4_000
_DENIAL_TEXT: Final = re.compile(r"the user said:\s*(?P<words>.*?)(?:\n\nNote: The user's next message|\Z)", re.DOTALL)
_QUESTION_AND_ANSWER: Final = re.compile(r'"(?P<question>[^"\n]{1,600})"="(?P<answer>[^"\n]{0,600})"')


def find_decisions(actions: Iterable[Action], answers: dict[int, str], project: str) -> tuple[Decision, ...]:
    """Return the decisions by turn; `answers` are the answers of the turns."""
    by_turn: dict[int, list[Decision]] = {number: [] for number in answers}
    stated_by_turn: dict[int, list[str]] = {}
    for action in actions:
        if action.agent:
            continue
        if action.step.kind == "words":
            stated_by_turn.setdefault(action.turn, []).extend(stated_decisions(action.assistant_text))
        else:
            by_turn.setdefault(action.turn, []).extend(_decisions_of_action(action, project))
    for number in by_turn:
        sentences = [*stated_decisions(answers.get(number, "")), *stated_by_turn.get(number, ())]
        by_turn[number] += [
            Decision(kind="said", text=sentence, turn=number)
            for sentence in list(dict.fromkeys(sentences))[:_MAX_PER_TURN]
        ]
    return tuple(each for number in sorted(by_turn) for each in by_turn[number])


def _decisions_of_action(action: Action, project: str) -> Iterator[Decision]:
    step = action.step
    if step.state == "denied":
        denial = _DENIAL_TEXT.search(action.output_text)
        instruction = denial["words"].strip() if denial else ""
        call_text = f"{step.verb} {relative_to_project(step.subject, project)}".strip()
        yield Decision(kind="refused", text=instruction, about=call_text, turn=action.turn)
    elif step.verb == "ExitPlanMode" and step.state == "ok":
        plan = action.tool_input.get("plan")
        if isinstance(plan, str) and plan.strip():
            yield Decision(kind="plan", text=plan.strip()[:_MAX_PLAN_LENGTH], turn=action.turn)
    elif step.verb == "AskUserQuestion" and step.state == "ok":
        for question, answer in _answers_of_action(action):
            yield Decision(kind="answer", text=answer, about=question, turn=action.turn)


def _answers_of_action(action: Action) -> list[tuple[str, str]]:
    recorded_answers = as_object(action.client_result.get("answers"))
    if recorded_answers is not None:
        return [(question, _answer_text(answer)) for question, answer in recorded_answers.items()]
    return [(match["question"], match["answer"]) for match in _QUESTION_AND_ANSWER.finditer(action.output_text)]


def _answer_text(answer: Any) -> str:
    answer_list = as_list(answer)
    return ", ".join(map(str, answer_list)) if answer_list is not None else str(answer)


def stated_decisions(text: str) -> list[str]:
    """Return the sentences of a text that state a decision.

    >>> stated_decisions("I looked around. I decided to keep SQLite, because it is there. Shall I go on?")
    ['I decided to keep SQLite, because it is there.']
    """
    sentences: list[str] = []
    for line in _CODE_BLOCK.sub("\n", text).split("\n"):
        plain_line = _MARKDOWN_MARKS.sub("", line).strip()
        if not DECISION_PHRASES.search(plain_line):
            continue
        for sentence in SENTENCE_ENDS.split(plain_line):
            has_valid_length = (
                len(sentence.encode("utf-8", "replace")) >= _MIN_SENTENCE_BYTES
                and len(sentence) <= _MAX_SENTENCE_LENGTH
            )
            if has_valid_length and DECISION_PHRASES.search(sentence) and not UNCERTAINTY.search(sentence):
                sentences.append(sentence.strip())
    return sentences
