"""Decisions in a session: plans, answers, denials, and decisions stated in text.

Sentences are found by phrases that state a choice, in several languages. The phrases are few on
purpose: a missed sentence costs less than one that states no decision.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from steno.format.lenient_json import as_list, as_object
from steno.report.actions.action import Action
from steno.report.brief.brief_document import Decision
from steno.report.humanize import relative_to_project

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
    """Say whether a sentence is a question.

    >>> is_question("Soll ich das einspielen?"), is_question("進めてもよろしいでしょうか。"), is_question("Done.")
    (True, True, False)
    """
    return bool(_QUESTION_END.search(sentence))


_CODE_BLOCK: Final = re.compile(r"^(`{3,}|~{3,}).*?(?:^\1|\Z)", re.DOTALL | re.MULTILINE)
_MARKDOWN_MARKS: Final = re.compile(r"^\s*(?:[#>]+|[-*+]|\d+[.)])\s+|\*\*|__")
_MIN_SENTENCE_BYTES: Final = 25
"""In bytes: a word of Chinese says as much as five letters."""
_MAX_SENTENCE_LENGTH: Final = 320
_MAX_PER_TURN: Final = 3
"""How many sentences of one turn are kept; the first, in its last words first."""
_MAX_PLAN_LENGTH: Final = 4_000
_DENIAL_TEXT: Final = re.compile(r"the user said:\s*(?P<words>.*?)(?:\n\nNote: The user's next message|\Z)", re.DOTALL)
_QUESTION_AND_ANSWER: Final = re.compile(r'"(?P<question>[^"\n]{1,600})"="(?P<answer>[^"\n]{0,600})"')


def find_decisions(actions: Iterable[Action], answers: dict[int, str], project: str) -> tuple[Decision, ...]:
    """Return what was settled, turn by turn; `answers` are the last words of each turn."""
    by_turn: dict[int, list[Decision]] = {number: [] for number in answers}
    stated_by_turn: dict[int, list[str]] = {}
    for action in actions:
        if action.agent:
            continue
        if action.step.kind == "words":
            stated_by_turn.setdefault(action.turn, []).extend(stated_decisions(action.spoken_text))
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
