"""AskUserQuestion: asks the user, with answers to choose from."""

from typing import Any, cast

import msgspec

from steno.tools.base import ToolFailure, ToolResult
from steno.tools.catalogue import own_spec
from steno.tools.context import ToolContext
from steno.tools.inputs import taken

__all__ = ["AskUserQuestion"]


class _Option(msgspec.Struct, frozen=True, omit_defaults=True):
    label: str
    description: str
    preview: str | msgspec.UnsetType = msgspec.UNSET


class _Question(msgspec.Struct, frozen=True, rename="camel"):
    question: str
    header: str
    options: list[_Option]
    multi_select: bool = False


class _Questions(msgspec.Struct, frozen=True):
    questions: list[_Question]


_MOST = 4
_FEWEST_OPTIONS = 2


class AskUserQuestion:
    """Asks the user.

    `context.ask("question", {"questions": …, "call": …})` answers with `{"answers": {question:
    words or a list of them}, "annotations": {…}}`; None, or no answers, when nobody is there.
    """

    spec = own_spec(
        "AskUserQuestion",
        description=(
            "Asks the user one to four questions, each with two to four answers to choose from; "
            "the user can always answer in words of their own. Ask where a choice is theirs to "
            "make or what they want is not clear, not for leave to go on. Put the answer you "
            "would choose first."
        ),
        schema={
            "type": "object",
            "properties": {
                "questions": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": _MOST,
                    "items": {
                        "type": "object",
                        "properties": {
                            "question": {"type": "string", "description": "The whole question"},
                            "header": {
                                "type": "string",
                                "description": "One or two words for it, at most 12 letters",
                            },
                            "options": {
                                "type": "array",
                                "minItems": _FEWEST_OPTIONS,
                                "maxItems": _MOST,
                                "items": {
                                    "type": "object",
                                    "properties": {
                                        "label": {
                                            "type": "string",
                                            "description": "The answer, in one to five words",
                                        },
                                        "description": {
                                            "type": "string",
                                            "description": "What choosing it means",
                                        },
                                    },
                                    "required": ["label", "description"],
                                },
                            },
                            "multiSelect": {
                                "type": "boolean",
                                "description": "Whether several answers can be chosen",
                            },
                        },
                        "required": ["question", "header", "options", "multiSelect"],
                    },
                }
            },
            "required": ["questions"],
        },
    )

    async def run(self, tool_input: dict[str, Any], context: ToolContext, call: str) -> ToolResult:
        """Ask."""
        questions = taken(tool_input, _Questions).questions
        _look(questions)
        shown: list[dict[str, Any]] = msgspec.to_builtins(questions)
        answer = (
            await context.ask("question", {"questions": shown, "call": call})
            if context.ask
            else None
        )
        if answer is None:
            raise ToolFailure(
                "Nobody is there to answer questions. Decide yourself, and say what you decided."
            )
        answers = _answers(questions, answer.get("answers"))
        detail = {
            "questions": shown,
            "answers": answers,
            "annotations": answer.get("annotations") or {},
        }
        if not answers:
            raise ToolFailure("The user did not answer the questions.")
        said = ", ".join(f'"{question}"="{words}"' for question, words in answers.items())
        words = f"Your questions have been answered: {said}. Go on with these answers in mind."
        return ToolResult(words, detail)


def _look(questions: list[_Question]) -> None:
    if not 1 <= len(questions) <= _MOST:
        raise ToolFailure(f"Ask one to {_MOST} questions at a time.")
    if len({question.question for question in questions}) < len(questions):
        raise ToolFailure("Each question must be another one.")
    for question in questions:
        labels = {option.label for option in question.options}
        if not _FEWEST_OPTIONS <= len(question.options) <= _MOST:
            raise ToolFailure(
                f'"{question.question}" needs {_FEWEST_OPTIONS} to {_MOST} answers to choose from.'
            )
        if len(labels) < len(question.options):
            raise ToolFailure(f'"{question.question}" has the same answer twice.')


def _answers(questions: list[_Question], given: Any) -> dict[str, str]:
    """Return the answers in words, in the order of the questions."""
    if not isinstance(given, dict):
        return {}
    answers = cast("dict[str, Any]", given)
    told: dict[str, str] = {}
    for question in questions:
        words = answers.get(question.question)
        if isinstance(words, list):
            words = ", ".join(map(str, cast("list[Any]", words)))
        if words:
            told[question.question] = str(words)
    return told
