"""Cuts long tool inputs, masks secrets, and fits a brief into a token budget.

To fit a budget, a brief is split into ranked parts: an open item ranks higher than a commit, a
commit higher than the files, the newest turn higher than the others, the newest session higher than
those before it. The highest-ranked parts that fit together are kept. The written form is measured,
so the budget is never exceeded.

>>> shorten_input({"file_path": "a.py", "content": "x" * 30}, 10)
({'file_path': 'a.py', 'content': 'xxxxxxxxxx'}, {'content': 30})
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, TypeVar, cast

import msgspec

from steno.report.brief.brief_document import AssistantText, Brief, BriefTurn, Decision, Subagent, ToolCall, WorkSummary
from steno.sanitize.display_masking import hide_known_secrets, hide_secrets
from steno.sanitize.markdown import shorten_text

SHOWN_INPUT_LENGTH: Final = 2_000
"""Maximum characters shown of a parameter."""
KEPT_INPUT_LENGTH: Final = 8_192
"""Maximum characters kept of a parameter until secrets are masked, so that a secret is not cut."""
_MAX_DEPTH: Final = 20


def shorten_input(value: dict[str, Any], longest: int) -> tuple[dict[str, Any], dict[str, int]]:
    """Return parameters with long values cut, and the full lengths of those that were cut."""
    shortened: dict[str, Any] = {}
    cut: dict[str, int] = {}
    for name, parameter in value.items():
        text = _long_text(parameter, longest)
        if text is None:
            shortened[name] = parameter
            continue
        shortened[name] = text[:longest]
        if len(text) > longest:
            cut[name] = len(text)
    return shortened, cut


def _long_text(value: Any, longest: int) -> str | None:
    """Return a value as text if it is too long or too deeply nested; otherwise None."""
    if isinstance(value, str):
        return value if len(value) > longest else None
    if not isinstance(value, dict | list):
        return None
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) > longest or _is_deep(value) else None


def _is_deep(value: Any) -> bool:
    """Return whether lists and objects are nested too deeply."""
    level: list[Any] = [value]
    for _ in range(_MAX_DEPTH):
        level = [inner for parent in level for inner in _children(parent)]
        if not level:
            return False
    return True


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(cast("dict[str, Any]", value).values())
    return cast("list[Any]", value) if isinstance(value, list) else []


def shorten_inputs(brief: Brief, longest: int = SHOWN_INPUT_LENGTH) -> Brief:
    """Return a brief with the parameters of calls shortened."""
    turns = tuple(
        msgspec.structs.replace(
            turn,
            calls=shorten_calls(turn.calls, longest),
            agents=tuple(
                msgspec.structs.replace(agent, calls=shorten_calls(agent.calls, longest)) for agent in turn.agents
            ),
        )
        for turn in brief.turns
    )
    return msgspec.structs.replace(brief, turns=turns)


def shorten_calls(calls: Iterable[ToolCall], longest: int) -> tuple[ToolCall, ...]:
    """Return calls with their parameters shortened."""
    return tuple(_shorten_call(call, longest) for call in calls)


def _shorten_call(call: ToolCall, longest: int) -> ToolCall:
    tool_input, cut = shorten_input(call.input, longest)
    if not cut:
        return call
    # The full length of a value that was cut before is in `call.cut`.
    return msgspec.structs.replace(call, input=tool_input, cut={**cut, **call.cut})


_UNMASKED_FIELDS: Final = frozenset(("hash", "state", "standing", "origin"))
"""Fields that are not masked: they contain no text from a session, or values that only resemble secrets."""
_ID_FIELDS: Final = frozenset(("id", "uuid", "agent_id", "call_id", "parent_id", "compacted_tool_ids"))
"""Fields with IDs, which resemble secrets."""
_ID_PATTERN: Final = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?:srv)?toolu_\w{1,40}|a?[0-9a-f]{1,32}", re.ASCII | re.IGNORECASE
)
"""Pattern of IDs; other values in these fields are masked as text."""
T = TypeVar("T", bound=msgspec.Struct)


def mask_brief(brief: Brief) -> Brief:
    """Return a brief with secrets and texts that resemble secrets masked.

    Home directories and addresses are not masked: readers of the brief need them.
    """
    return _mask_struct(brief, lru_cache(maxsize=None)(hide_secrets))


def _mask_struct(value: T, mask: Callable[[str], str]) -> T:
    changes: dict[str, Any] = {}
    for name in value.__struct_fields__:
        if name in _UNMASKED_FIELDS:
            continue
        value_before = getattr(value, name)
        if name == "input":
            value_after = _mask_input(value_before, mask)
        else:
            value_after = _mask_value(value_before, _keep_ids(mask) if name in _ID_FIELDS else mask)
        if value_after is not value_before:
            changes[name] = value_after
    return msgspec.structs.replace(value, **changes) if changes else value


def _keep_ids(mask: Callable[[str], str]) -> Callable[[str], str]:
    """Return a function that keeps IDs and masks other text."""
    return lambda text: text if _ID_PATTERN.fullmatch(text) else mask(text)


def _mask_input(tool_input: dict[str, Any], mask: Callable[[str], str]) -> dict[str, Any]:
    """Mask the parameters of a call; the value of a parameter such as `password` is a secret."""
    text = json.dumps(tool_input, ensure_ascii=False)
    hidden = hide_known_secrets(text)
    masked_input: Any = tool_input if hidden == text else json.loads(hidden)
    return _mask_value(masked_input, mask)


def _mask_value(value: Any, mask: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return mask(value) if value else value
    if isinstance(value, msgspec.Struct):
        return _mask_struct(value, mask)
    if isinstance(value, tuple):
        return tuple(_mask_value(item, mask) for item in cast("tuple[Any, ...]", value))
    if isinstance(value, list):
        return [_mask_value(each, mask) for each in cast("list[Any]", value)]
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        return {mask(name): _mask_value(each, mask) for name, each in pairs}
    return value


_IMPORTANT_COUNT: Final = 12
"""Number of files and open items that count as important."""
_MAX_AGE: Final = 3
_LINE_LENGTH: Final = 160
_SHORT_LENGTH: Final = 600
_LONG_LENGTH: Final = 1_400
_PLAN_LENGTH: Final = 2_900
_WORK_RANKS: Final = {
    "commits": (_IMPORTANT_COUNT, 2, 6),
    "pulls": (_IMPORTANT_COUNT, 2, 6),
    "files": (_IMPORTANT_COUNT, 4, 9),
    "snapshot_files": (_IMPORTANT_COUNT, 6, 9),
    "helpers": (_IMPORTANT_COUNT, 8, 10),
}
"""Number of important items, rank of these items, and rank of all other items."""
_WORK_LISTS: Final = (
    *("commits", "pulls", "files", "snapshot_files", "tests", "helpers", "decisions", "troubles"),
    "commands",
)
_PARAMETER_LENGTH: Final = 160
"""Maximum characters of a call parameter."""
_FULL_AGENT_LIMIT: Final = _LONG_LENGTH + 1
"""Minimum text limit at which the texts and calls of a sub-agent are included."""
_TURN_RANKS: Final[dict[str, tuple[tuple[int, int, int], ...]]] = {
    "texts": ((8, 11, 2 * _LINE_LENGTH), (11, 13, _LONG_LENGTH)),
    "calls": ((11, 13, 0),),
    "agents": ((8, 11, 2 * _LINE_LENGTH), (11, 12, _LONG_LENGTH), (13, 14, _FULL_AGENT_LIMIT)),
    "backups": ((10, 12, 0),),
    "compactions": ((9, 9, 2 * _LINE_LENGTH), (12, 13, _LONG_LENGTH)),
    "queue": ((12, 14, 0),),
}
"""Content of a turn: rank in the last turn, rank in other turns, and text limit."""
_TURN_SHIFT: Final = 20
_PARTS_PER_TOKEN: Final = 8
"""Maximum number of parts per token, not 1, because some parts are empty, for example a missing answer."""
_EXTRA_TOKENS: Final = 64


class _BriefPart(msgspec.Struct, frozen=True, order=True):
    """A part of a brief that is kept or omitted as a whole; lower ranks come first."""

    rank: int
    session: int
    kind: str
    place: int
    limit: int = 0
    """Maximum characters of a text."""


def fit_to_budget(briefs: Sequence[Brief], fits_budget: Callable[[list[Brief]], bool], budget: int) -> list[Brief]:
    """Return as much of the briefs as fits, newest first; whole sessions may be omitted.

    `budget` only limits the number of parts to try.
    """
    is_only_brief = len(briefs) == 1
    parts = sorted(
        part for index, brief in enumerate(briefs) for part in _brief_parts(brief, index, is_only_brief=is_only_brief)
    )
    low, high = 0, min(len(parts), _PARTS_PER_TOKEN * (budget + _EXTRA_TOKENS))
    best: list[Brief] = []
    while low < high:
        middle = (low + high + 1) // 2
        candidate = _select_parts(briefs, parts[:middle])
        if fits_budget(candidate):
            low, best = middle, candidate
        else:
            high = middle - 1
    return best


def _brief_parts(brief: Brief, session_index: int, *, is_only_brief: bool) -> list[_BriefPart]:
    age = 2 * min(session_index, _MAX_AGE)
    parts: list[_BriefPart] = [_BriefPart(age, session_index, "", 0)]

    def add_part(rank: int, kind: str, at: int, limit: int = 0) -> None:
        parts.append(_BriefPart(rank + age + 1, session_index, kind, at, limit))

    add_part(9, "tools", 0)
    for at in range(len(brief.open)):
        add_part(0 if at < _IMPORTANT_COUNT else 8, "open", at)
    work = brief.work
    for name, (important_rank, rank, other_rank) in _WORK_RANKS.items():
        for at in range(len(getattr(work, name))):
            add_part(rank if at < important_rank else other_rank, name, at)
    for at in range(len(work.tests)):
        # The last test run shows the current state.
        add_part(2 if at == len(work.tests) - 1 else 8, "tests", at)
    for at in range(len(work.commands)):
        # Positions are negative because later commands are more important.
        add_part(10, "commands", -at)
    for at, trouble in enumerate(work.troubles):
        add_part(8 if trouble.solved else 4, "troubles", at)
    for at, decision in enumerate(work.decisions):
        _add_decision(add_part, decision, at)
    active_turns = [at for at, turn in enumerate(brief.turns) if not turn.idle]
    for at in active_turns:
        first, last = at == active_turns[0], at == active_turns[-1]
        _add_turn(add_part, -at, first=first, last=last, middle=5 if is_only_brief else 8)
        _add_turn_content(add_part, brief.turns[at], at, last=last)
    return parts


def _add_turn_content(add_part: Callable[..., None], turn: BriefTurn, at: int, *, last: bool) -> None:
    for name, ranks in _TURN_RANKS.items():
        for index, item in enumerate(getattr(turn, name)):
            if isinstance(item, AssistantText) and item.final:
                # Part of the answer.
                continue
            for rank_of_last, rank, limit in ranks:
                add_part(rank_of_last if last else rank, name, _position_in_turns(at, index), limit)


def _position_in_turns(at: int, index: int) -> int:
    """Return the position of an item: later turns first, then items in order."""
    return index - (at << _TURN_SHIFT)


def _add_decision(add_part: Callable[..., None], decision: Decision, at: int) -> None:
    add_part(6 if decision.kind == "said" else 3, "decisions", at, _LINE_LENGTH * 2)
    if decision.kind == "plan":
        add_part(7, "decisions", at, _SHORT_LENGTH)
        add_part(9, "decisions", at, _PLAN_LENGTH)


def _add_turn(add_part: Callable[..., None], position: int, *, first: bool, last: bool, middle: int) -> None:
    """Split a turn into parts; positions are negative."""
    is_outer = first or last
    add_part(1 if is_outer else middle, "asked", position, _LINE_LENGTH)
    add_part(7 if is_outer else 9, "asked", position, _SHORT_LENGTH)
    add_part(10 if is_outer else 12, "asked", position, _LONG_LENGTH)
    add_part(3 if last else max(7, middle), "answer", position, _SHORT_LENGTH if last else 2 * _LINE_LENGTH)
    add_part(6 if last else 11, "answer", position, _LONG_LENGTH)
    add_part(10, "facts", position)


def _select_parts(briefs: Sequence[Brief], parts: Sequence[_BriefPart]) -> list[Brief]:
    chosen: dict[int, dict[str, dict[int, int]]] = {}
    for part in parts:
        limits = chosen.setdefault(part.session, {}).setdefault(part.kind, {})
        limits[part.place] = max(part.limit, limits.get(part.place, 0))
    return [_pruned(briefs[index], chosen[index]) for index in sorted(chosen)]


def _pruned(brief: Brief, chosen: dict[str, dict[int, int]]) -> Brief:
    work = _pruned_work(brief.work, chosen)
    turns = _pruned_turns(brief.turns, chosen)
    open_items = tuple(item for at, item in enumerate(brief.open) if at in chosen.get("open", {}))
    active_turns = [turn for turn in brief.turns if not turn.idle]
    answered = {turn.number for turn in active_turns if turn.answer}
    # The work of a single turn is that of the session.
    is_alone = len(active_turns) == 1 and not brief.elsewhere
    turns_with_work = {turn.number for turn in active_turns if turn.work != WorkSummary() and not is_alone}
    counts = {
        "open": len(brief.open) - len(open_items),
        "turns": len(active_turns) - len(turns),
        # Only of the turns that are included: an omitted turn is counted as a whole.
        "answers": sum(turn.number in answered and not turn.answer for turn in turns),
        "turn_work": sum(turn.number in turns_with_work and turn.work == WorkSummary() for turn in turns),
        "looks": brief.work.looks - work.looks,
        "slips": brief.work.slips - work.slips,
    }
    for name in (*_WORK_LISTS, "tools"):
        counts[name] = len(getattr(brief.work, name)) - len(getattr(work, name))
    before, after = _count_contents(active_turns), _count_contents(turns)
    counts.update({name: before[name] - after[name] for name in before})
    omitted = {name: number for name, number in counts.items() if number}
    return msgspec.structs.replace(brief, open=open_items, turns=turns, work=work, omitted=omitted)


def _count_contents(turns: Sequence[BriefTurn]) -> dict[str, int]:
    """Return the number of items in turns; final texts are counted as answers."""
    counts = {name: sum(len(getattr(turn, name)) for turn in turns) for name in _TURN_RANKS}
    counts["texts"] -= sum(text.final for turn in turns for text in turn.texts)
    counts["meanwhile"] = sum(len(turn.meanwhile) for turn in turns)
    agents = [agent for turn in turns for agent in turn.agents]
    counts["agent_texts"] = sum(len(agent.texts) for agent in agents)
    counts["agent_calls"] = sum(len(agent.calls) for agent in agents)
    return counts


def _pruned_work(work: WorkSummary, chosen: dict[str, dict[int, int]]) -> WorkSummary:
    lists: dict[str, tuple[Any, ...]] = {}
    for name in _WORK_LISTS:
        places = {abs(place) for place in chosen.get(name, {})}
        lists[name] = tuple(item for at, item in enumerate(getattr(work, name)) if at in places)
    limits = chosen.get("decisions", {})
    lists["decisions"] = tuple(
        msgspec.structs.replace(each, text=shorten_text(each.text, limits[at]))
        for at, each in enumerate(work.decisions)
        if at in limits
    )
    with_counts = "tools" in chosen
    return msgspec.structs.replace(
        work,
        **lists,
        tools=work.tools if with_counts else {},
        looks=work.looks if with_counts else 0,
        # Minor failures are shown below the failures.
        slips=work.slips if with_counts and (lists["troubles"] or not work.troubles) else 0,
    )


def _pruned_turns(turns: Sequence[BriefTurn], chosen: dict[str, dict[int, int]]) -> tuple[BriefTurn, ...]:
    prompt_limits, answer_limits, with_facts = (chosen.get(name, {}) for name in ("asked", "answer", "facts"))
    remaining: list[BriefTurn] = []
    for at, turn in enumerate(turns):
        position = -at
        if position not in prompt_limits and position not in answer_limits:
            continue
        remaining.append(
            msgspec.structs.replace(
                turn,
                text=shorten_text(turn.text, prompt_limits.get(position, _LINE_LENGTH)),
                answer=shorten_text(turn.answer, answer_limits[position]) if position in answer_limits else "",
                meanwhile=turn.meanwhile if position in with_facts else (),
                work=turn.work if position in with_facts else WorkSummary(),
                **_pruned_content(turn, at, chosen),
            )
        )
    return tuple(remaining)


def _pruned_content(turn: BriefTurn, at: int, chosen: dict[str, dict[int, int]]) -> dict[str, tuple[Any, ...]]:
    """Return the reduced content of a turn, by field."""
    remaining: dict[str, list[tuple[Any, int]]] = {}
    for name in _TURN_RANKS:
        limits = chosen.get(name, {})
        rows = enumerate(getattr(turn, name))
        remaining[name] = [
            (item, limits[_position_in_turns(at, index)])
            for index, item in rows
            if _position_in_turns(at, index) in limits
        ]
    replace = msgspec.structs.replace
    return {
        "texts": tuple(replace(each, text=shorten_text(each.text, limit)) for each, limit in remaining["texts"]),
        "calls": shorten_calls((each for each, _ in remaining["calls"]), _PARAMETER_LENGTH),
        "agents": tuple(_pruned_agent(each, to) for each, to in remaining["agents"]),
        "backups": tuple(each for each, _ in remaining["backups"]),
        "compactions": tuple(
            replace(each, summary=shorten_text(each.summary, to)) for each, to in remaining["compactions"]
        ),
        "queue": tuple(replace(each, content=each.content[:_LINE_LENGTH]) for each, _ in remaining["queue"]),
    }


def _pruned_agent(agent: Subagent, limit: int) -> Subagent:
    texts = agent.texts if limit >= _FULL_AGENT_LIMIT else ()
    return msgspec.structs.replace(
        agent,
        prompt=shorten_text(agent.prompt, limit),
        report=shorten_text(agent.report, limit),
        texts=tuple(msgspec.structs.replace(text, text=shorten_text(text.text, _SHORT_LENGTH)) for text in texts),
        calls=shorten_calls(agent.calls if limit >= _FULL_AGENT_LIMIT else (), _PARAMETER_LENGTH),
    )
