"""What was settled: plans approved, questions answered, calls refused, decisions that were stated.

Sentences are found by words that state a choice, in several languages. That misses some and seldom takes
one that states none.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from steno.format.values import as_list, as_object
from steno.report.brief.cues import ENDS, STATES, UNSURE
from steno.report.brief.values import Decision
from steno.report.deeds.deed import Deed
from steno.report.words import below

__all__ = ["decisions", "stated"]

_CODE: Final = re.compile(r"^(`{3,}|~{3,}).*?(?:^\1|\Z)", re.DOTALL | re.MULTILINE)
_MARKS: Final = re.compile(r"^\s*(?:[#>]+|[-*+]|\d+[.)])\s+|\*\*|__")
_SHORTEST: Final = 25
"""In bytes: a word of Chinese says as much as five letters."""
_LONGEST: Final = 320
_EACH: Final = 3
"""How many sentences of one turn are kept; the first, in its last words first."""
_PLAN: Final = 4_000
_INSTEAD: Final = re.compile(
    r"the user said:\s*(?P<words>.*?)(?:\n\nNote: The user's next message|\Z)", re.DOTALL
)
_PAIR: Final = re.compile(r'"(?P<question>[^"\n]{1,600})"="(?P<answer>[^"\n]{0,600})"')


def decisions(deeds: Iterable[Deed], answers: dict[int, str], project: str) -> tuple[Decision, ...]:
    """Return what was settled, turn by turn; `answers` are the last words of each turn."""
    settled: dict[int, list[Decision]] = {number: [] for number in answers}
    said: dict[int, list[str]] = {}
    for deed in deeds:
        if deed.agent:
            continue
        if deed.step.kind == "words":
            said.setdefault(deed.turn, []).extend(stated(deed.words))
        else:
            settled.setdefault(deed.turn, []).extend(_settled(deed, project))
    for number in settled:
        own = [*stated(answers.get(number, "")), *said.get(number, ())]
        settled[number] += [
            Decision(kind="said", text=each, turn=number)
            for each in list(dict.fromkeys(own))[:_EACH]
        ]
    return tuple(each for number in sorted(settled) for each in settled[number])


def _settled(deed: Deed, project: str) -> Iterator[Decision]:
    step = deed.step
    if step.state == "denied":
        words = _INSTEAD.search(deed.printed)
        told = words["words"].strip() if words else ""
        about = f"{step.verb} {below(step.subject, project)}".strip()
        yield Decision(kind="refused", text=told, about=about, turn=deed.turn)
    elif step.verb == "ExitPlanMode" and step.state == "ok":
        plan = deed.given.get("plan")
        if isinstance(plan, str) and plan.strip():
            yield Decision(kind="plan", text=plan.strip()[:_PLAN], turn=deed.turn)
    elif step.verb == "AskUserQuestion" and step.state == "ok":
        for question, answer in _answers(deed):
            yield Decision(kind="answer", text=answer, about=question, turn=deed.turn)


def _answers(deed: Deed) -> list[tuple[str, str]]:
    kept = as_object(deed.kept.get("answers"))
    if kept is not None:
        return [(question, _text(answer)) for question, answer in kept.items()]
    return [(found["question"], found["answer"]) for found in _PAIR.finditer(deed.printed)]


def _text(answer: Any) -> str:
    several = as_list(answer)
    return ", ".join(map(str, several)) if several is not None else str(answer)


def stated(text: str) -> list[str]:
    """Return the sentences of a text that state a decision.

    >>> stated("I looked around. I decided to keep SQLite, because it is there. Shall I go on?")
    ['I decided to keep SQLite, because it is there.']
    """
    found: list[str] = []
    for line in _CODE.sub("\n", text).split("\n"):
        bare = _MARKS.sub("", line).strip()
        if not STATES.search(bare):
            continue
        for sentence in ENDS.split(bare):
            fits = (
                len(sentence.encode("utf-8", "replace")) >= _SHORTEST and len(sentence) <= _LONGEST
            )
            if fits and STATES.search(sentence) and not UNSURE.search(sentence):
                found.append(sentence.strip())
    return found
