"""AskUserQuestion: asks the user multiple-choice questions."""

from typing import Any, cast

import msgspec

from steno.tools.context import ToolContext
from steno.tools.protocol import ToolFailure, ToolResult, builtin_spec, parse_input


class _QuestionOption(msgspec.Struct, frozen=True, omit_defaults=True):
    label: str
    description: str
    preview: str | msgspec.UnsetType = msgspec.UNSET


class _Question(msgspec.Struct, frozen=True, rename="camel"):
    question: str
    header: str
    options: list[_QuestionOption]
    multi_select: bool = False


class _QuestionsInput(msgspec.Struct, frozen=True):
    questions: list[_Question]


_MAX_QUESTIONS = 4
_MIN_OPTIONS = 2


class AskUserQuestion:
    """Asks the user multiple-choice questions.

    `context.ask("question", {"questions": …, "call": …})` returns `{"answers": {question: text or list of
    texts}, "annotations": {…}}`; None or no answers if no user is available.
    """

    spec = builtin_spec(
        "AskUserQuestion",
        description=(
            "Asks the user one to four multiple-choice questions with two to four options each. "
            "The user can also answer in free text. Use it for decisions that the user should make and for "
            "unclear requirements, not to ask for permission to continue. Put the recommended "
            "option first."
        ),
        schema={
            "type": "object",
            "properties": {
                "questions": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": _MAX_QUESTIONS,
                    "items": {
                        "type": "object",
                        "properties": {
                            "question": {"type": "string", "description": "The complete question"},
                            "header": {"type": "string", "description": "Short label, at most 12 characters"},
                            "options": {
                                "type": "array",
                                "minItems": _MIN_OPTIONS,
                                "maxItems": _MAX_QUESTIONS,
                                "items": {
                                    "type": "object",
                                    "properties": {
                                        "label": {"type": "string", "description": "The option, one to five words"},
                                        "description": {"type": "string", "description": "What the option means"},
                                    },
                                    "required": ["label", "description"],
                                },
                            },
                            "multiSelect": {"type": "boolean", "description": "Allow several options to be chosen"},
                        },
                        "required": ["question", "header", "options", "multiSelect"],
                    },
                }
            },
            "required": ["questions"],
        },
    )

    async def run(self, tool_input: dict[str, Any], context: ToolContext, call: str) -> ToolResult:
        """Ask the user and return the answers."""
        questions = parse_input(tool_input, _QuestionsInput).questions
        _check_questions(questions)
        question_data: list[dict[str, Any]] = msgspec.to_builtins(questions)
        answer = await context.ask("question", {"questions": question_data, "call": call}) if context.ask else None
        if answer is None:
            raise ToolFailure("No user is available to answer questions. Decide yourself and report your decision.")
        answers = _format_answers(questions, answer.get("answers"))
        detail = {"questions": question_data, "answers": answers, "annotations": answer.get("annotations") or {}}
        if not answers:
            raise ToolFailure("The user did not answer the questions.")
        answer_list = ", ".join(f'"{question}"="{content}"' for question, content in answers.items())
        words = f"Your questions have been answered: {answer_list}. Continue with these answers in mind."
        return ToolResult(words, detail)


def _check_questions(questions: list[_Question]) -> None:
    if not 1 <= len(questions) <= _MAX_QUESTIONS:
        raise ToolFailure(f"Ask 1 to {_MAX_QUESTIONS} questions at a time.")
    if len({question.question for question in questions}) < len(questions):
        raise ToolFailure("The questions must be different.")
    for question in questions:
        labels = {option.label for option in question.options}
        if not _MIN_OPTIONS <= len(question.options) <= _MAX_QUESTIONS:
            raise ToolFailure(f'"{question.question}" must have {_MIN_OPTIONS} to {_MAX_QUESTIONS} options.')
        if len(labels) < len(question.options):
            raise ToolFailure(f'"{question.question}" has duplicate options.')


def _format_answers(questions: list[_Question], raw_answers: Any) -> dict[str, str]:
    if not isinstance(raw_answers, dict):
        return {}
    answers = cast("dict[str, Any]", raw_answers)
    formatted: dict[str, str] = {}
    for question in questions:
        answer = answers.get(question.question)
        if isinstance(answer, list):
            answer = ", ".join(map(str, cast("list[Any]", answer)))
        if answer:
            formatted[question.question] = str(answer)
    return formatted
