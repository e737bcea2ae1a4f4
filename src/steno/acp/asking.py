"""What the user is asked through the client: permission, a plan, a choice, trust."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol, TypeAlias

from acp import helpers
from acp.exceptions import RequestError
from acp.schema import (
    AllowedOutcome,
    PermissionOption,
    PermissionOptionKind,
    RequestPermissionResponse,
    ToolCallUpdate,
)

from steno.acp import calls
from steno.agent.calls import Permission
from steno.format.values import as_list, as_object
from steno.guard.decision import Decision
from steno.safe.terminal import one_line

__all__ = ["Asking", "Client"]

_Choice: TypeAlias = tuple[str, str, PermissionOptionKind]
"""What an answer is called, its words, and how clients show it."""
_REFUSED: Final = "The user does not want this."
_RULE: Final = 60
_PLAN: Final[tuple[_Choice, ...]] = (
    ("acceptEdits", "Yes, and edit freely", "allow_always"),
    ("default", "Yes, but ask before each edit", "allow_once"),
    ("no", "No, keep planning", "reject_once"),
)
_ENTER: Final[tuple[_Choice, ...]] = (
    ("yes", "Yes, plan first", "allow_once"),
    ("no", "No, go ahead", "reject_once"),
)
_TRUST: Final[tuple[_Choice, ...]] = (
    ("yes", "I trust this folder", "allow_always"),
    ("no", "Not now", "reject_once"),
)
_TRUSTED: Final = (
    "It brings files of its own: instructions for the model, settings, perhaps commands that run "
    "by themselves. Without trust they have no effect."
)


class Client(Protocol):
    """Whoever shows the user questions, and knows the answers."""

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption]
    ) -> RequestPermissionResponse:
        """Ask the user to choose."""
        ...


class Asking:
    """Asks the user of one session."""

    def __init__(
        self,
        client: Client,
        session_id: str,
        cwd: Callable[[], str],
        gone: Callable[[], None],
    ) -> None:
        self._client = client
        self._session = session_id
        self._cwd = cwd
        self._gone = gone

    async def permission(self, call: dict[str, Any], decision: Decision) -> Permission:
        """Ask whether a call may be made."""
        choices: list[_Choice] = [("once", "Allow once", "allow_once")]
        if decision.offers:
            rule = one_line(decision.offers[0], _RULE)
            choices.append(("session", f"Allow {rule} in this session", "allow_always"))
            choices.append(("local", f"Always allow {rule} in this project", "allow_always"))
        choices.append(("no", "Reject", "reject_once"))
        told = calls.wanted(call, self._cwd())
        told.content = [*_words(f"Asks because {decision.reason}"), *(told.content or [])]
        answer = await self._choose(told, choices)
        rules = decision.offers[:1]
        match answer:
            case "once":
                return Permission(granted=True)
            case "session" if rules:
                return Permission(granted=True, rules=rules)
            case "local" if rules:
                return Permission(granted=True, rules=rules, place="local")
            case _:
                return Permission(granted=False, words=_REFUSED)

    async def tool(self, kind: str, what: dict[str, Any]) -> dict[str, Any] | None:
        """Ask what a tool wants to know."""
        if kind == "plan":
            return await self._plan(what)
        return await self._questions(what) if kind == "question" else None

    async def trust(self, folder: str, found: list[str]) -> bool:
        """Ask whether a folder's own files may have an effect; what there is is named."""
        told = ToolCallUpdate(
            tool_call_id="trust",
            title=f"Do you trust {one_line(folder)}?",
            kind="other",
            status="pending",
            content=_words(f"{_TRUSTED}\n\n{', '.join(found)}"),
        )
        return await self._choose(told, _TRUST) == "yes"

    async def _plan(self, what: dict[str, Any]) -> dict[str, Any]:
        enters = what.get("step") == "enter"
        plan = str(what.get("plan") or "The plan is empty.")
        told = ToolCallUpdate(
            tool_call_id=str(what.get("call")),
            title="Plan first, before anything is changed?" if enters else "Go on with this plan?",
            kind="switch_mode",
            status="pending",
            content=[] if enters else _words(plan),
        )
        answer = await self._choose(told, _ENTER if enters else _PLAN)
        if answer in ("", "no"):
            return {"approved": False}
        return {"approved": True} if enters else {"approved": True, "mode": answer}

    async def _questions(self, what: dict[str, Any]) -> dict[str, Any]:
        """Ask one after the other; where several answers may be chosen, one is."""
        answers: dict[str, str] = {}
        for each in as_list(what.get("questions")) or []:
            question = as_object(each) or {}
            options = [as_object(one) or {} for one in as_list(question.get("options")) or []]
            labels = [str(one.get("label")) for one in options]
            choices: list[_Choice] = [
                (str(at), label, "allow_once") for at, label in enumerate(labels)
            ]
            lines = (f"- **{one.get('label')}**: {one.get('description')}" for one in options)
            told = ToolCallUpdate(
                tool_call_id=str(what.get("call")),
                title=one_line(str(question.get("question"))),
                kind="think",
                status="pending",
                content=_words("\n".join(lines)),
            )
            answer = await self._choose(told, [*choices, ("no", "Skip", "reject_once")])
            if not answer.isdecimal() or int(answer) >= len(labels):
                return {"answers": {}}
            answers[str(question.get("question"))] = labels[int(answer)]
        return {"answers": answers}

    async def _choose(
        self,
        told: ToolCallUpdate,
        choices: Iterable[_Choice],
    ) -> str:
        """Return what the user chose; nothing when they chose nothing."""
        options = [
            PermissionOption(option_id=name, name=label, kind=kind) for name, label, kind in choices
        ]
        try:
            reply = await self._client.request_permission(self._session, told, options)
        except ConnectionError:
            # Nobody is there any more. That is no answer: the turn is broken off right here.
            self._gone()
            await asyncio.get_running_loop().create_future()
            return ""
        except RequestError:
            return ""
        outcome = reply.outcome
        return outcome.option_id if isinstance(outcome, AllowedOutcome) else ""


def _words(text: str) -> list[calls.Content]:
    return [helpers.tool_content(helpers.text_block(text))] if text else []
