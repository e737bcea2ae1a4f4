"""Ties engine, screen and prompt together: one loop, one thing at a time, the prompt always there."""

import asyncio
import os
import time
from typing import TYPE_CHECKING, Any, Final

from steno.console.face import Face
from steno.console.history import Typed
from steno.console.prompt import Prompt
from steno.console.signals import heeding_signals
from steno.errors import StenoError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from prompt_toolkit.buffer import Buffer

    from steno.agent.calls import Judge
    from steno.agent.events import Ended, Event
    from steno.agent.loop import Model
    from steno.agent.sessions import Work
    from steno.agent.started import Started
    from steno.console.asking import Asking
    from steno.console.commands import Table
    from steno.console.permission import Consents
    from steno.console.screen import Screen
    from steno.console.setting import Ready, Setting
    from steno.console.stream import Stream

__all__ = ["Talk"]

_TICK: Final = 0.25
_LONG: Final = 10.0
_TOLD: Final = 3
_MODES: Final = ("default", "acceptEdits", "plan")
_AGAIN: Final = "once more to leave"


class Talk:
    """One console."""

    def __init__(self, screen: "Screen", setting: "Setting") -> None:
        self.screen = screen
        self.setting = setting
        self.prompt = Prompt(screen, self, history=Typed(), vi=setting.vi)
        self.prompt.buffer.on_text_changed += self._typed_on
        self.face = Face(self)
        self.waiting: list[str] = []
        """What was said and is yet to be taken up."""
        self.turns = 0
        self.left_at = ""
        """The session that was worked in last, if anything was said in it."""
        self.stream: Stream
        self.ready: Ready
        self.started: Started | None = None
        self.table: Table
        self.consents: Consents
        self.asking: Asking
        self._model: Model
        self._woken = asyncio.Event()
        self._leaving = False
        self._carried: tuple[str, tuple[str, ...]] = ("", ())
        self._doing: asyncio.Task[Any] | None = None
        self._beside: set[asyncio.Task[Any]] = set()
        # What commands keep from one time to the next, and what they started beside the console.
        self.kept: dict[str, Any] = {}
        self.programs: list[asyncio.subprocess.Process] = []

    # From beginning to end

    async def run(self) -> int:
        """Open the console; return the exit code when the user leaves it."""
        app = self.prompt.app
        drawing = asyncio.ensure_future(app.run_async(handle_sigint=False))
        working = asyncio.ensure_future(self._work())
        with heeding_signals(self.leave):
            try:
                await asyncio.wait({drawing, working}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                self._leaving = True
                if self.started is not None:
                    self.started.agent.interrupt()
                working.cancel()
                ended = (await asyncio.gather(working, return_exceptions=True))[0]
                await self._leave()
                self.screen.output.clear_title()
                if not drawing.done() and app.is_running:
                    app.exit()
                await asyncio.gather(drawing, return_exceptions=True)
        if isinstance(ended, Exception):
            raise ended
        return 0

    async def _work(self) -> None:
        """Get the engine, and take up what is said until the user leaves."""
        self.ready = await asyncio.to_thread(self._prepared)
        from steno.console import asking, markdown

        await asking.settle_trust(self.prompt, self.stream, self.ready.options)
        async with self.ready.model() as model:
            self._model = model
            try:
                await self.enter(self.ready.work())
                self.face.greet()
                self.beside(asyncio.to_thread(markdown.warm_up))
                if self.setting.first:
                    self.waiting.append(self.setting.first)
                while not self._leaving:
                    await self._take_up()
            finally:
                await self._close("prompt_input_exit")

    def _prepared(self) -> "Ready":
        """Import what the console needs from here on, while the user may type already."""
        from steno.console.asking import Asking
        from steno.console.commands import Table
        from steno.console.complete import Completions
        from steno.console.permission import Consents
        from steno.console.stream import Stream

        ready = self.setting.prepare()
        options = ready.options
        self.stream = Stream(self.screen, os.path.realpath(options.cwd))
        self.table = Table()
        env = dict(options.env)
        self.consents = Consents(self.prompt, self.stream, self._guard, self._cwd, env)
        self.asking = Asking(self.prompt, self.stream)
        for asks in (self.consents, self.asking):
            asks.notify = self.face.notify
            asks.stop = self.interrupt
        completions = Completions(self._named, self._cwd)
        self.prompt.completer = completions
        self.prompt.found_at_once = completions.at_once
        return ready

    async def release(self) -> None:
        """Leave the session; another is entered next."""
        await self._close("other")

    async def reenter(self, make: "Callable[[], Work]", *, tell: bool = True) -> "Work":
        """Leave the session, then enter the one that `make` opens; where it fails, a new one."""
        from steno.agent.sessions import new

        options = self.ready.options
        await self.release()
        try:
            work = await asyncio.to_thread(make)
        except (StenoError, OSError):
            await self.enter(new(options.config, options.cwd), tell=False)
            raise
        await self.enter(work, "resume", tell=tell)
        return work

    async def enter(self, work: "Work", source: str = "", *, tell: bool = True) -> None:
        """Work in a session from now on; the one before it is left."""
        from steno.agent.options import People
        from steno.agent.start import start

        await self._close("clear" if source == "clear" else "other")
        path = work.talk.recorder.path
        going_on = _is_there(path)
        people = People(emit=self._hear, consent=self.consents, ask=self.asking)
        try:
            started = start(self.ready.options, work, self._model, people, self.ready.price)
        except BaseException:
            work.talk.recorder.close()
            raise
        started.source = source or started.source
        context = started.agent.caller.context
        told = context.notify
        context.notify = lambda said: self._ended_beside(said, told)
        mode, rules = self._carried
        if mode:
            context.plan.permission_mode = mode
        if not tell:
            # It is the same work, taken up elsewhere.
            started.granted.rules = rules
        self.started = started
        self.turns = 0
        self.stream.anew()
        self.face.own_status(started)
        if going_on and tell:
            width = self.screen.width
            told_of = await asyncio.to_thread(lambda: list(self.setting.tell(path, _TOLD, width)))
            self.stream.block(told_of, "told")
        await started.open()
        self.changed()

    async def _close(self, reason: str) -> None:
        started, self.started = self.started, None
        await self.face.close()
        if started is not None:
            recorder = started.agent.talk.recorder
            self.left_at = recorder.session_id if _is_there(recorder.path) else self.left_at
            self._carried = (started.mode(), started.granted.rules)
            await started.close(reason)

    async def _leave(self) -> None:
        for task in self._beside:
            task.cancel()
        await asyncio.gather(*self._beside, return_exceptions=True)
        for process in self.programs:
            if process.returncode is None:
                process.terminate()
                await process.wait()

    def leave(self) -> None:
        """End everything."""
        self._leaving = True
        if self.prompt.dialog is not None:
            self.prompt.dialog.reply(None)
        self.interrupt()
        self._woken.set()

    def written(self) -> str:
        """Return the path of the session; nothing before anything was said in it."""
        path = self.started.agent.talk.recorder.path if self.started is not None else ""
        return path if path and _is_there(path) else ""

    # What is said

    def is_busy(self) -> bool:
        """Whether there is something to break into."""
        return self._doing is not None

    def submit(self, text: str) -> None:
        """Take what was typed: some commands at once, everything else in its turn."""
        self.prompt.hint = ""
        found = self.table.found(text) if self.started is not None else None
        if found is not None and found[0].anytime and self.is_busy():
            self.stream.said(text)
            self.beside(found[0].run(self, found[1]))
            return
        self.waiting.append(text)
        self._woken.set()
        self.screen.refresh()

    def _typed_on(self, _buffer: "Buffer") -> None:
        """Whoever types on does not mean to leave."""
        if self.prompt.hint == _AGAIN:
            self.prompt.hint = ""

    def beside(self, doing: "Awaitable[Any]") -> None:
        """Do something while other things go on."""
        task = asyncio.ensure_future(self._guarded(doing))
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    def take_back(self) -> str:
        """Return the prompt that was queued last; it waits no longer."""
        return self.waiting.pop() if self.waiting else ""

    def interrupt(self) -> None:
        """Break into what is done; what was to be done next is the user's again."""
        if self.waiting and not self._leaving:
            waiting, self.waiting = self.waiting, []
            self.prompt.put("\n".join([*waiting, *filter(None, [self.prompt.buffer.text])]))
        agent = self.started.agent if self.started is not None else None
        if agent is not None and agent.is_working:
            agent.interrupt()
        elif self._doing is not None:
            self._doing.cancel()

    def wish(self, what: str) -> None:
        """Do what a key wishes for."""
        if what == "leave":
            if self.prompt.hint == _AGAIN:
                self.leave()
            self.prompt.hint = _AGAIN
            self.screen.refresh()
        elif self.started is None:
            return
        elif what == "mode":
            at = _MODES.index(mode) if (mode := self.started.mode()) in _MODES else -1
            self.set_mode(_MODES[(at + 1) % len(_MODES)])
        elif what == "rewind":
            self.submit("/rewind")
        else:
            command = self.table.named(what)
            self.beside(command.run(self, ""))

    def set_mode(self, mode: str) -> None:
        """Go on in another permission mode."""
        if self.started is not None:
            self.started.agent.caller.context.plan.permission_mode = mode
            self.changed()

    async def _take_up(self) -> None:
        """Take up the next thing that was said, when there is one."""
        if not self.waiting:
            self._woken.clear()
            await self._woken.wait()
            return
        text = self.waiting.pop(0)
        self._doing = asyncio.ensure_future(self._guarded(self._do(text)))
        ticking = asyncio.ensure_future(self._tick())
        try:
            await self._doing
        except asyncio.CancelledError:
            outer = asyncio.current_task()
            if self._leaving or (outer is not None and outer.cancelling()):
                raise
        finally:
            self._doing = None
            self.prompt.hint = ""
            ticking.cancel()
            self.changed()
        self.face.lead_on()

    async def _guarded(self, doing: "Awaitable[Any]") -> None:
        """Do something; what goes wrong is told, and the console goes on."""
        try:
            await doing
        except StenoError as error:
            self.stream.note(str(error), "red")
            if error.hint:
                self.stream.note(error.hint, "dim")
        except OSError as error:
            self.stream.note(error.strerror or str(error), "red")

    async def _do(self, text: str) -> None:
        from steno.console import typed
        from steno.console.commands import miscalled

        found = self.table.found(text)
        if found is not None:
            self.stream.said(text)
            await found[0].run(self, found[1])
        elif text.startswith("!") and text[1:].strip():
            self.stream.said(text)
            await typed.run_shell(self, text[1:].strip())
        elif text.startswith("#") and "\n" not in text and text.strip("# "):
            self.stream.said(text)
            await typed.keep_memory(self, text.lstrip("# "))
        elif wrong := miscalled(text, self._named()):
            self.stream.said(text)
            self.stream.note(wrong)
            if not self.prompt.buffer.text:
                self.prompt.put(text)
        else:
            await self.say(text)

    async def say(self, text: str) -> "Ended | None":
        """Take a prompt to its answer."""
        from steno.console.typed import with_images

        if self.started is None:
            return None
        self.turns += 1
        self.stream.said(text)
        content, named = await asyncio.to_thread(with_images, text, self._cwd())
        for name in named:
            self.stream.note(f"with the image {name}", "dim")
        self.stream.begin()
        self.face.begin(text)
        began = time.monotonic()
        ended = await self.started.hear(content)
        if time.monotonic() - began > _LONG:
            self.face.notify("done")
        return ended

    # What happens

    def _hear(self, event: "Event") -> None:
        from steno.agent.events import Answered, ToolEnded

        if isinstance(event, ToolEnded):
            self._hand_over()
        self.stream.take(event)
        if isinstance(event, Answered | ToolEnded):
            self.changed()

    def _hand_over(self) -> None:
        """Let the model hear at the next chance what was said meanwhile; commands wait."""
        while (
            self.started is not None and self.waiting and self.waiting[0][:1] not in ("/", "!", "#")
        ):
            text = self.waiting.pop(0)
            self.started.agent.inbox.append((text, False))
            self.stream.said(text)

    def _ended_beside(self, said: str, told: Any) -> None:
        told(said)
        self.face.ended_beside(said)

    async def _tick(self) -> None:
        """Have what turns turn; where somebody has it read out nothing does."""
        while not self.screen.reader:
            await asyncio.sleep(_TICK)
            self.screen.refresh()

    def changed(self) -> None:
        """Have everything that is seen brought up to date."""
        self.face.changed()

    def _guard(self) -> "Judge | None":
        return self.started.agent.caller.guard if self.started is not None else None

    def _cwd(self) -> str:
        started = self.started
        return started.agent.caller.context.cwd if started is not None else os.getcwd()

    def _named(self) -> list[tuple[str, str]]:
        """Return everything that can be called, with a word on it."""
        own = self.table.offers()
        if self.started is None:
            return own
        known = {name for name, _ in own}
        return [*own, *(each for each in self.started.slash.offers if each[0] not in known)]


def _is_there(path: str) -> bool:
    return os.path.exists(path)
