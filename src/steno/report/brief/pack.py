"""As much of a brief as fits into so many tokens: what is worth most first, and what is left out.

A brief is cut into grains, each with a worth: an open end is worth more than a commit, a commit more
than the files, the newest turn more than the others, the newest session more than those before it.
The most valuable grains that fit together are kept; whatever is written of them is measured as it
is, so a budget is never exceeded.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from steno.report.brief.quote import shortened
from steno.report.brief.tool_inputs import shortened_calls
from steno.report.brief.turn_content import AssistantText, SubAgent
from steno.report.brief.values import Asked, Brief, Decision, Work

__all__ = ["packed"]

_NEAR: Final = 12
"""How many files, and open ends, count as important."""
_AGES: Final = 3
_LINE: Final = 160
_SHORT: Final = 600
_LONG: Final = 1_400
_PLAN: Final = 2_900
_RANKS: Final = {
    "commits": (_NEAR, 2, 6),
    "pulls": (_NEAR, 2, 6),
    "files": (_NEAR, 4, 9),
    "snapshot_files": (_NEAR, 6, 9),
    "helpers": (_NEAR, 8, 10),
}
"""How many of what are important, how important these are, and how important the others."""
_LISTS: Final = (
    *("commits", "pulls", "files", "snapshot_files", "tests", "helpers", "decisions", "troubles"),
    "commands",
)
_VALUE: Final = 160
"""Characters of a parameter of a call."""
_WHOLE_AGENT: Final = _LONG + 1
"""The limit at which the texts and calls of a sub-agent are kept too."""
_TURN_RANKS: Final[dict[str, tuple[tuple[int, int, int], ...]]] = {
    "texts": ((8, 11, 2 * _LINE), (11, 13, _LONG)),
    "calls": ((11, 13, 0),),
    "agents": ((8, 11, 2 * _LINE), (11, 12, _LONG), (13, 14, _WHOLE_AGENT)),
    "backups": ((10, 12, 0),),
    "compactions": ((9, 9, 2 * _LINE), (12, 13, _LONG)),
    "queue": ((12, 14, 0),),
}
"""Of what a turn holds: how important it is in the last turn and in others, at which limit."""
_SHIFT: Final = 20
_PER_TOKEN: Final = 8
"""How many grains may take a token together: some have nothing to say, such as no answer."""
_LEAST: Final = 64


class _Grain(msgspec.Struct, frozen=True, order=True):
    """A part of a brief that is kept or left out as a whole; lower comes first."""

    rank: int
    session: int
    kind: str
    place: int
    limit: int = 0
    """How many letters of a text."""


def packed(
    briefs: Sequence[Brief], fits: Callable[[list[Brief]], bool], budget: int
) -> list[Brief]:
    """Return the most of some briefs, newest first, that fits; sessions may be left out whole.

    `budget` only says how much there is no need to try.
    """
    alone = len(briefs) == 1
    grains = sorted(
        grain for place, brief in enumerate(briefs) for grain in _grains(brief, place, alone=alone)
    )
    low, high = 0, min(len(grains), _PER_TOKEN * (budget + _LEAST))
    best: list[Brief] = []
    while low < high:
        middle = (low + high + 1) // 2
        kept = _kept(briefs, grains[:middle])
        if fits(kept):
            low, best = middle, kept
        else:
            high = middle - 1
    return best


def _grains(brief: Brief, place: int, *, alone: bool) -> list[_Grain]:
    age = 2 * min(place, _AGES)
    found: list[_Grain] = [_Grain(age, place, "", 0)]

    def add(rank: int, kind: str, at: int, limit: int = 0) -> None:
        found.append(_Grain(rank + age + 1, place, kind, at, limit))

    add(9, "tools", 0)
    for at in range(len(brief.open)):
        add(0 if at < _NEAR else 8, "open", at)
    work = brief.work
    for name, (near, rank, other) in _RANKS.items():
        for at in range(len(getattr(work, name))):
            add(rank if at < near else other, name, at)
    for at in range(len(work.tests)):
        # The last run says how things stand.
        add(2 if at == len(work.tests) - 1 else 8, "tests", at)
    for at in range(len(work.commands)):
        # Places count down where what came later is worth more.
        add(10, "commands", -at)
    for at, trouble in enumerate(work.troubles):
        add(8 if trouble.solved else 4, "troubles", at)
    for at, decision in enumerate(work.decisions):
        _add_decision(add, decision, at)
    told = [at for at, turn in enumerate(brief.turns) if not turn.idle]
    for at in told:
        first, last = at == told[0], at == told[-1]
        _add_turn(add, -at, first=first, last=last, middle=5 if alone else 8)
        _add_content(add, brief.turns[at], at, last=last)
    return found


def _add_content(add: Callable[..., None], turn: Asked, at: int, *, last: bool) -> None:
    for name, ranks in _TURN_RANKS.items():
        for index, each in enumerate(getattr(turn, name)):
            if isinstance(each, AssistantText) and each.final:
                # The answer has it.
                continue
            for rank_of_last, rank, limit in ranks:
                add(rank_of_last if last else rank, name, _place(at, index), limit)


def _place(at: int, index: int) -> int:
    """Return the place of something in a turn: later turns come first, and in a turn the first."""
    return index - (at << _SHIFT)


def _add_decision(add: Callable[..., None], decision: Decision, at: int) -> None:
    add(6 if decision.kind == "said" else 3, "decisions", at, _LINE * 2)
    if decision.kind == "plan":
        add(7, "decisions", at, _SHORT)
        add(9, "decisions", at, _PLAN)


def _add_turn(
    add: Callable[..., None], place: int, *, first: bool, last: bool, middle: int
) -> None:
    """Cut up a turn; its place counts down."""
    near = first or last
    add(1 if near else middle, "asked", place, _LINE)
    add(7 if near else 9, "asked", place, _SHORT)
    add(10 if near else 12, "asked", place, _LONG)
    add(3 if last else max(7, middle), "answer", place, _SHORT if last else 2 * _LINE)
    add(6 if last else 11, "answer", place, _LONG)
    add(10, "facts", place)


def _kept(briefs: Sequence[Brief], grains: Sequence[_Grain]) -> list[Brief]:
    chosen: dict[int, dict[str, dict[int, int]]] = {}
    for grain in grains:
        mine = chosen.setdefault(grain.session, {}).setdefault(grain.kind, {})
        mine[grain.place] = max(grain.limit, mine.get(grain.place, 0))
    return [_pruned(briefs[place], chosen[place]) for place in sorted(chosen)]


def _pruned(brief: Brief, chosen: dict[str, dict[int, int]]) -> Brief:
    work = _pruned_work(brief.work, chosen)
    turns = _pruned_turns(brief.turns, chosen)
    opened = tuple(each for at, each in enumerate(brief.open) if at in chosen.get("open", {}))
    told = [turn for turn in brief.turns if not turn.idle]
    answered = {turn.number for turn in told if turn.answer}
    # The work in the only turn is that of the session.
    is_alone = len(told) == 1 and not brief.elsewhere
    worked = {turn.number for turn in told if turn.work != Work() and not is_alone}
    counts = {
        "open": len(brief.open) - len(opened),
        "turns": len(told) - len(turns),
        # Of the turns that are there: one that is not is counted as a whole.
        "answers": sum(turn.number in answered and not turn.answer for turn in turns),
        "turn_work": sum(turn.number in worked and turn.work == Work() for turn in turns),
        "looks": brief.work.looks - work.looks,
        "slips": brief.work.slips - work.slips,
    }
    for name in (*_LISTS, "tools"):
        counts[name] = len(getattr(brief.work, name)) - len(getattr(work, name))
    before, after = _counted(told), _counted(turns)
    counts.update({name: before[name] - after[name] for name in before})
    omitted = {name: number for name, number in counts.items() if number}
    return msgspec.structs.replace(brief, open=opened, turns=turns, work=work, omitted=omitted)


def _counted(turns: Sequence[Asked]) -> dict[str, int]:
    """Return how much turns hold; the texts of answers are counted as answers."""
    counts = {name: sum(len(getattr(turn, name)) for turn in turns) for name in _TURN_RANKS}
    counts["texts"] -= sum(text.final for turn in turns for text in turn.texts)
    counts["meanwhile"] = sum(len(turn.meanwhile) for turn in turns)
    agents = [agent for turn in turns for agent in turn.agents]
    counts["agent_texts"] = sum(len(agent.texts) for agent in agents)
    counts["agent_calls"] = sum(len(agent.calls) for agent in agents)
    return counts


def _pruned_work(work: Work, chosen: dict[str, dict[int, int]]) -> Work:
    lists: dict[str, tuple[Any, ...]] = {}
    for name in _LISTS:
        places = {abs(place) for place in chosen.get(name, {})}
        lists[name] = tuple(each for at, each in enumerate(getattr(work, name)) if at in places)
    limits = chosen.get("decisions", {})
    lists["decisions"] = tuple(
        msgspec.structs.replace(each, text=shortened(each.text, limits[at]))
        for at, each in enumerate(work.decisions)
        if at in limits
    )
    figures = "tools" in chosen
    return msgspec.structs.replace(
        work,
        **lists,
        tools=work.tools if figures else {},
        looks=work.looks if figures else 0,
        # They are told as a remark on the failures.
        slips=work.slips if figures and (lists["troubles"] or not work.troubles) else 0,
    )


def _pruned_turns(turns: Sequence[Asked], chosen: dict[str, dict[int, int]]) -> tuple[Asked, ...]:
    asked, answers, facts = (chosen.get(name, {}) for name in ("asked", "answer", "facts"))
    kept: list[Asked] = []
    for at, turn in enumerate(turns):
        place = -at
        if place not in asked and place not in answers:
            continue
        kept.append(
            msgspec.structs.replace(
                turn,
                text=shortened(turn.text, asked.get(place, _LINE)),
                answer=shortened(turn.answer, answers[place]) if place in answers else "",
                meanwhile=turn.meanwhile if place in facts else (),
                work=turn.work if place in facts else Work(),
                **_pruned_content(turn, at, chosen),
            )
        )
    return tuple(kept)


def _pruned_content(
    turn: Asked, at: int, chosen: dict[str, dict[int, int]]
) -> dict[str, tuple[Any, ...]]:
    """Return what is kept of the texts, calls and so on of a turn, by the field."""
    kept: dict[str, list[tuple[Any, int]]] = {}
    for name in _TURN_RANKS:
        limits = chosen.get(name, {})
        rows = enumerate(getattr(turn, name))
        kept[name] = [
            (each, limits[_place(at, index)]) for index, each in rows if _place(at, index) in limits
        ]
    replace = msgspec.structs.replace
    return {
        "texts": tuple(replace(each, text=shortened(each.text, to)) for each, to in kept["texts"]),
        "calls": shortened_calls((each for each, _ in kept["calls"]), _VALUE),
        "agents": tuple(_pruned_agent(each, to) for each, to in kept["agents"]),
        "backups": tuple(each for each, _ in kept["backups"]),
        "compactions": tuple(
            replace(each, summary=shortened(each.summary, to)) for each, to in kept["compactions"]
        ),
        "queue": tuple(replace(each, content=each.content[:_LINE]) for each, _ in kept["queue"]),
    }


def _pruned_agent(agent: SubAgent, limit: int) -> SubAgent:
    texts = agent.texts if limit >= _WHOLE_AGENT else ()
    return msgspec.structs.replace(
        agent,
        prompt=shortened(agent.prompt, limit),
        report=shortened(agent.report, limit),
        texts=tuple(
            msgspec.structs.replace(each, text=shortened(each.text, _SHORT)) for each in texts
        ),
        calls=shortened_calls(agent.calls if limit >= _WHOLE_AGENT else (), _VALUE),
    )
