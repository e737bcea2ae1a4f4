"""What tools ask the user: to agree to a plan, to choose between answers; and whether to trust."""

from typing import TYPE_CHECKING, Any, Final

from steno.console.dialog import Choice, Dialog
from steno.errors import StenoError
from steno.format.values import as_list, as_object
from steno.safe.terminal import Line, wrap

if TYPE_CHECKING:
    from collections.abc import Callable

    from steno.agent.options import Options
    from steno.console.prompt import Prompt
    from steno.console.stream import Stream

__all__ = ["Asking", "settle_trust"]

_PLAN: Final = (
    Choice("y", "yes, and edit freely", "acceptEdits"),
    Choice("m", "yes, but ask before each edit", "default"),
    Choice("n", "no, keep planning", "no"),
)
_ENTER: Final = (Choice("y", "yes, plan first", "yes"), Choice("n", "no, go ahead", "no"))
_BRINGS: Final = (
    "It brings files of its own: instructions for the model, settings, perhaps commands that run by "
    "themselves. Without trust they have no effect."
)


class Asking:
    """Answers what tools ask, with the user."""

    def __init__(self, prompt: "Prompt", stream: "Stream") -> None:
        self._prompt = prompt
        self._stream = stream
        self.notify: Callable[[str], None] = lambda _words: None
        self.stop: Callable[[], None] = lambda: None
        self.asking = False

    async def __call__(self, kind: str, what: dict[str, Any]) -> dict[str, Any] | None:
        """Ask the user something; None when they leave it."""
        self.asking = True
        try:
            if kind == "plan":
                self.notify("a plan waits for you")
                return await self._plan(what)
            if kind == "question":
                self.notify("a question waits for you")
                return await self._questions(what)
            return None
        finally:
            self.asking = False

    async def _plan(self, what: dict[str, Any]) -> dict[str, Any]:
        if what.get("step") == "enter":
            reply = await self._prompt.ask(
                Dialog("Plan first, before anything is changed?", (), _ENTER)
            )
            return {"approved": reply is not None and reply.value == "yes"}
        plan = what.get("plan")
        # A plan is as long as it is: it is printed, and only the question stays below.
        self._stream.prose(str(plan) if plan else "*The plan is empty.*")
        dialog = Dialog("Go on with this plan?", (), _PLAN, words="say what should be different")
        reply = await self._prompt.ask(dialog)
        if reply is None:
            self.stop()
            return {"approved": False}
        if reply.value in ("no", "words"):
            words = reply.words
            if reply.value == "no":
                words = await self._words("What should be different?")
            if words.strip():
                self._stream.said(words)
            return {"approved": False, "words": words}
        return {"approved": True, "mode": reply.value}

    async def _words(self, title: str) -> str:
        reply = await self._prompt.ask(Dialog(title, (), (), words="enter sends, esc leaves it"))
        return reply.words if reply is not None else ""

    async def _questions(self, what: dict[str, Any]) -> dict[str, Any] | None:
        answers: dict[str, str | list[str]] = {}
        for each in as_list(what.get("questions")) or []:
            question = as_object(each) or {}
            reply = await self._question(question)
            if reply is None:
                self.stop()
                return {"answers": {}}
            answers[str(question.get("question"))] = reply
        self._stream.block(
            [
                ["    ", (f"{question} ", "dim"), _in_words(answer)]
                for question, answer in answers.items()
            ],
            "answers",
        )
        return {"answers": answers}

    async def _question(self, question: dict[str, Any]) -> str | list[str] | None:
        options = [as_object(each) or {} for each in as_list(question.get("options")) or []]
        choices = [
            Choice(
                str(at),
                str(each.get("label")),
                str(each.get("label")),
                str(each.get("description")),
            )
            for at, each in enumerate(options, 1)
        ]
        many = question.get("multiSelect") is True
        asked = str(question.get("question"))
        dialog = Dialog(
            str(question.get("header") or "Question"),
            lambda columns: [[line] for line in wrap(asked, columns)],
            choices,
            words="an answer in your own words",
        )
        dialog.many = many
        reply = await self._prompt.ask(dialog)
        if reply is None:
            return None
        if reply.value == "words":
            return reply.words
        return list(reply.values) if many else reply.value


async def settle_trust(prompt: "Prompt", stream: "Stream", options: "Options") -> None:
    """Ask once about a folder that brings files which would have an effect."""
    from steno.guard.trust import own_files, trust

    found = own_files(options.cwd)
    if options.trusted or not found:
        return
    try:
        if await _trusts(prompt, options.cwd, found):
            trust(options.cwd)
            options.trusted = True
    except StenoError as error:
        stream.note(str(error))


def _in_words(answer: str | list[str]) -> str:
    return answer if isinstance(answer, str) else ", ".join(answer)


async def _trusts(prompt: "Prompt", folder: str, found: list[str]) -> bool:
    """Ask whether a folder's own files may have an effect; what there is is named."""

    def body(columns: int) -> list[Line]:
        where: list[Line] = [["  ", (line, "bold")] for line in wrap(folder, columns - 2)]
        told: list[Line] = [[line] for line in wrap(_BRINGS, columns)]
        names: list[Line] = [["  ", (line, "dim")] for line in wrap(", ".join(found), columns - 2)]
        return [*where, *told, *names]

    choices = (Choice("y", "yes, I trust it", "yes"), Choice("n", "not now", "no"))
    reply = await prompt.ask(Dialog("Do you trust this folder?", body, choices, framed=True))
    return reply is not None and reply.value == "yes"
