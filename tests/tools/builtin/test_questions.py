"""Questions to the user."""

import asyncio
from typing import Any

import pytest

from steno.tools.builtin.questions import AskUserQuestion
from steno.tools.context import ToolContext
from steno.tools.protocol import ToolFailure, ToolResult, UserAnswer

COLOUR: dict[str, Any] = {
    "question": "Which colour?",
    "header": "Colour",
    "multiSelect": False,
    "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}],
}


def ask(questions: Any, answer: UserAnswer | None, seen: list[Any] | None = None) -> ToolResult:
    async def answered(kind: str, what: dict[str, Any]) -> UserAnswer | None:
        if seen is not None:
            seen.append((kind, what))
        return answer

    context = ToolContext(cwd="/", project="/", session_id="s", folder="/", env={}, ask=answered)
    return asyncio.run(AskUserQuestion().run({"questions": questions}, context, "toolu_1"))


def test_the_answer_reaches_the_model_and_the_session() -> None:
    seen: list[Any] = []
    outcome = ask([COLOUR], {"answers": {"Which colour?": "Red"}}, seen)
    assert str(outcome.content).startswith('Your questions have been answered: "Which colour?"="Red".')
    assert outcome.detail == {"questions": [COLOUR], "answers": {"Which colour?": "Red"}, "annotations": {}}
    assert list(outcome.detail["questions"][0]) == ["question", "header", "options", "multiSelect"]
    assert seen == [("question", {"questions": [COLOUR], "call": "toolu_1"})]


def test_several_answers_are_joined() -> None:
    outcome = ask([COLOUR], {"answers": {"Which colour?": ["Red", "Blue"]}})
    assert outcome.detail["answers"] == {"Which colour?": "Red, Blue"}


def test_answers_in_the_call_itself_are_not_taken_for_the_users() -> None:
    context = ToolContext(cwd="/", project="/", session_id="s", folder="/", env={})
    given = {"questions": [COLOUR], "answers": {"Which colour?": "Red"}}
    with pytest.raises(ToolFailure, match="No user is available"):
        asyncio.run(AskUserQuestion().run(given, context, "toolu_1"))


def test_nobody_there_is_a_failure_in_words() -> None:
    with pytest.raises(ToolFailure, match="No user is available"):
        ask([COLOUR], None)


@pytest.mark.parametrize("answer", [{}, {"answers": {}}, {"answers": "Red"}])
def test_no_answer_is_a_failure_in_words(answer: UserAnswer) -> None:
    with pytest.raises(ToolFailure, match="did not answer"):
        ask([COLOUR], answer)


@pytest.mark.parametrize(
    "questions",
    [
        [],
        [COLOUR, COLOUR],
        [{**COLOUR, "question": str(number)} for number in range(5)],
        [{**COLOUR, "options": COLOUR["options"][:1]}],
        [{**COLOUR, "options": [COLOUR["options"][0]] * 2}],
        [{"question": "Which?"}],
        "Which?",
    ],
)
def test_bad_questions_are_not_asked(questions: Any) -> None:
    seen: list[Any] = []
    with pytest.raises(ToolFailure):
        ask(questions, {"answers": {}}, seen)
    assert seen == []
