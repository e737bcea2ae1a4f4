"""One session that a client talks in: prompts in, updates and questions out."""

import asyncio
import os
from typing import Final

from acp import helpers
from acp.exceptions import RequestError
from acp.schema import (
    AvailableCommand,
    AvailableCommandInput,
    SessionMode,
    SessionModeState,
    StopReason,
    UnstructuredCommandInput,
)

from steno.acp.asking import Asking
from steno.acp.past import past
from steno.acp.post import Editor, Post
from steno.acp.prompts import Given, said
from steno.acp.setting import Setting
from steno.acp.telling import Telling, Update
from steno.agent.events import Ended, Event, Reason, ToolEnded
from steno.agent.loop import Model
from steno.agent.options import Options, People
from steno.agent.sessions import Work
from steno.agent.slash import CLEAR, told
from steno.agent.start import start
from steno.agent.started import Started
from steno.errors import BadRequest, Busy, StenoError
from steno.guard.decision import Mode
from steno.guard.trust import own_files, trust
from steno.session.session import Session
from steno.session.transcript import load
from steno.store.read import FileSource

__all__ = ["NO_KEY", "Thread"]

NO_KEY: Final = -32000
"""What a client takes for a missing or a wrong key."""
_FAILED: Final = -32603
_NOT_ALLOWED: Final = (401, 403)
_MODES: Final[dict[Mode, tuple[str, str]]] = {
    "default": ("Ask", "Asks before it writes or runs anything that no rule allows"),
    "acceptEdits": ("Edit freely", "Edits files of the folder without asking"),
    "plan": ("Plan", "Looks and plans; nothing is changed before you agree"),
    "dontAsk": ("Don't ask", "Refuses what no rule allows, instead of asking"),
    "bypassPermissions": ("Bypass", "Asks about nothing; only rules that deny hold"),
}
_OWN: Final = (
    ("compact", "put a summary in the place of the conversation", "what matters"),
    ("context", "how full the window is", ""),
    ("cost", "what was spent", ""),
)
_STOPS: Final[dict[Reason, StopReason]] = {
    "done": "end_turn",
    "empty": "end_turn",
    "refused": "end_turn",
    "interrupted": "cancelled",
    "max_turns": "max_turn_requests",
    "max_budget": "max_turn_requests",
    "max_time": "max_turn_requests",
}
_LIMITS: Final[dict[Reason, str]] = {
    "max_budget": "As much was spent as is allowed.",
    "max_time": "It took as long as is allowed.",
}
_PATIENCE: Final = 5.0
"""How many seconds are waited for servers that the client names."""
_ANOTHER: Final = "This conversation stays as it is; a new thread begins another."


class Thread:
    """A session, and the engine at work in it."""

    def __init__(
        self, editor: Editor, setting: Setting, model: Model, options: Options, work: Work
    ) -> None:
        self._setting = setting
        self._model = model
        self._options = options
        self._work = work
        self.id = work.id
        self._post = Post(editor, self.id)
        self._telling = Telling(options.cwd)
        self._asking = Asking(self._post, self.id, self._cwd, self.cancel)
        self._started = self._start(work)
        self._mode = self._started.mode()
        self._early: list[Update] = []
        """What happened before the client knew of the session."""
        self._turn: asyncio.Task[StopReason] | None = None
        self._cancelled = False
        self._new = True

    def _start(self, work: Work) -> Started:
        people = People(emit=self._hear, consent=self._asking.permission, ask=self._asking.tool)
        return start(self._options, work, self._model, people, self._setting.price)

    def _cwd(self) -> str:
        return self._started.agent.caller.context.cwd

    # From beginning to end

    async def open(self) -> None:
        """Begin."""
        await self._started.open()

    def introduce(self) -> None:
        """Tell what can be called, once the client knows of the session."""
        listed = [*self._started.slash.offers, *(each[:2] for each in _OWN)]
        hints = {name: hint for name, _, hint in _OWN}
        self._post.put(
            helpers.update_available_commands(
                AvailableCommand(
                    name=name, description=about or name, input=_input(hints.get(name, "arguments"))
                )
                for name, about in listed
            )
        )

    async def retell(self) -> None:
        """Tell everything that was said and done before."""
        path = self._work.talk.recorder.path
        # As it was before this process wrote to it; what it wrote are ends of broken calls.
        with Session(load(FileSource(path))) as session:
            for update in await asyncio.to_thread(lambda: list(past(session, self._options.cwd))):
                self._post.put(update)
        await self._post.sent()

    async def close(self) -> None:
        """End what still runs, and let the session go."""
        self.cancel()
        if self._turn is not None:
            await asyncio.gather(self._turn, return_exceptions=True)
        await self._started.close("other")
        await self._post.close()

    # Modes

    def modes(self) -> SessionModeState:
        """Return the modes that there are, and which one it is in."""
        return SessionModeState(
            current_mode_id=self._started.mode(),
            available_modes=[
                SessionMode(id=mode, name=_MODES[mode][0], description=_MODES[mode][1])
                for mode in self._allowed_modes()
            ],
        )

    def _allowed_modes(self) -> list[Mode]:
        forbidden = self._started.settings.permissions.bypass_disabled
        return [mode for mode in _MODES if mode != "bypassPermissions" or not forbidden]

    def set_mode(self, wanted: str) -> None:
        """Go on in another mode.

        Raises:
            BadRequest: there is no such mode here.
        """
        known = self._allowed_modes()
        if wanted not in known:
            raise BadRequest(f"there is no mode {wanted!r} here", hint=f"one of {', '.join(known)}")
        self._started.agent.caller.context.plan.permission_mode = wanted
        self._mode = self._started.mode()

    # Turns

    async def prompt(self, given: list[Given]) -> StopReason:
        """Take a prompt to its answer; return why it stopped.

        Raises:
            Busy: there is a turn under way.
            BadRequest: the prompt is none.
            RequestError: the model did not answer.
        """
        if self._turn is not None:
            raise Busy("this session is still at work", hint="cancel it, or wait for its end")
        self._cancelled = False
        self._turn = asyncio.ensure_future(self._answered(given))
        try:
            return await self._turn
        finally:
            self._turn = None

    def cancel(self) -> None:
        """Break in, whatever is done."""
        self._cancelled = True
        self._started.agent.interrupt()

    async def _answered(self, given: list[Given]) -> StopReason:
        self._post.put(*self._early)
        self._early.clear()
        content = await asyncio.to_thread(said, given, self._cwd())
        call = told(content)
        if call is not None and call[0] == CLEAR:
            self._post.put(helpers.update_agent_message_text(_ANOTHER))
            await self._post.sent()
            return "end_turn"
        if self._new:
            self._new = False
            await self._ask_trust()
            # Those that were asked for by name should be there for the first request.
            await self._started.servers.settle(_PATIENCE if self._options.mcp_config else 0)
        if self._cancelled:
            return "cancelled"
        self._telling.begin()
        ended = await self._started.hear(content)
        if ended.reason in _LIMITS:
            self._post.put(helpers.update_agent_message_text(_LIMITS[ended.reason]))
        await self._post.sent()
        return self._stop(ended)

    def _stop(self, ended: Ended) -> StopReason:
        failed, response = self._telling.failed, self._telling.response
        if ended.reason == "error":
            status = failed.error.status if failed is not None else 0
            code = NO_KEY if status in _NOT_ALLOWED else _FAILED
            raise RequestError(code, ended.text, {"status": status})
        if ended.reason == "not_saved":
            raise RequestError(_FAILED, ended.problem)
        if self._telling.kept_out or (response is not None and response.stop_reason == "refusal"):
            return "refusal"
        if ended.reason == "done" and response is not None:
            stopped = response.stop_reason
            return "max_tokens" if stopped == "max_tokens" else "end_turn"
        return _STOPS[ended.reason]

    async def _ask_trust(self) -> None:
        """Ask about a folder that brings files of its own; with trust it begins again with them."""
        options = self._options
        found = own_files(options.cwd)
        if options.trusted or not found or not await self._asking.trust(options.cwd, found):
            return
        try:
            trust(options.cwd)
        except StenoError as error:
            self._post.put(helpers.update_agent_thought_text(str(error)))
            return
        options.trusted = True
        mode = self._mode
        await self._started.close("other")
        self._started = self._start(self._again())
        self._started.agent.caller.context.plan.permission_mode = mode
        await self._started.open()
        self._tell_early()
        self.introduce()

    def _again(self) -> Work:
        from steno.agent.sessions import go_on, new

        path = self._work.talk.recorder.path
        if os.path.exists(path):
            self._work = go_on(path, self._options.cwd)
        else:
            self._work = new(self._options.config, self._options.cwd, session_id=self.id)
        return self._work

    def _tell_early(self) -> None:
        self._post.put(*self._early)
        self._early.clear()

    # What happens

    def _hear(self, event: Event) -> None:
        updates = list(self._telling.take(event))
        if self._turn is None:
            self._early += updates
            return
        self._post.put(*updates)
        if isinstance(event, ToolEnded | Ended) and self._started.mode() != self._mode:
            self._mode = self._started.mode()
            self._post.put(helpers.update_current_mode(self._mode))


def _input(hint: str) -> AvailableCommandInput | None:
    return AvailableCommandInput(root=UnstructuredCommandInput(hint=hint)) if hint else None
