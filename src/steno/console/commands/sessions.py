"""Commands about sessions: go on with another, fork, name, tell, export."""

import asyncio
import os
from base64 import b64encode
from functools import partial
from typing import TYPE_CHECKING, Final

from steno.agent.sizes import text_of
from steno.console.commands import Command
from steno.console.dialog import Choice, Dialog
from steno.console.programs import own, run_program
from steno.errors import BadRequest
from steno.report import clock, words
from steno.safe.terminal import Line, one_line

if TYPE_CHECKING:
    from steno.console.talk import Talk
    from steno.store.found import Found
    from steno.store.glance import Glance

__all__ = ["COMMANDS"]

_MOST: Final = 500
_PREVIEWED: Final = 4


async def _resume(talk: "Talk", arguments: str) -> None:
    """Go on with another session: by its name, or picked from a list that can be searched."""
    from steno.agent.sessions import go_on

    path = await _picked(talk, arguments.strip())
    started = talk.started
    if not path or started is None:
        return
    cwd = talk.ready.options.cwd
    recorder = started.agent.talk.recorder
    if path != recorder.path:
        work = await asyncio.to_thread(go_on, path, cwd)
        unsent = await asyncio.to_thread(_unsent, path)
        await talk.enter(work, "resume")
        for words in unsent:
            talk.stream.note(words)
    elif recorder.problem is None:
        talk.stream.note("that is this session", "dim")
    else:
        # What another program has written to it is loaded with it.
        await talk.reenter(partial(go_on, path, cwd))


def _unsent(path: str) -> list[str]:
    """Return what to say of a session whose summary is not sent."""
    from steno.check.compacted import UNSENT_SUMMARY, has_unsent_summary
    from steno.session.transcript import load
    from steno.store.read import FileSource

    return [UNSENT_SUMMARY] if has_unsent_summary(load(FileSource(path))) else []


async def _picked(talk: "Talk", name: str) -> str:
    from steno.store.library import find

    options = talk.ready.options
    if name:
        return (
            await asyncio.to_thread(find, name, options.config, options.cwd, archived=False)
        ).path
    here = talk.written()
    looks = await asyncio.to_thread(_seen, options.config, options.cwd)
    looks = [pair for pair in looks if pair[0].path != here]
    if not looks:
        talk.stream.note("there are no other sessions of this folder", "dim")
        return ""
    now = clock.now()
    choices = [
        Choice("", one_line(look.title) or "(no title)", found.path, _when(look, now))
        for found, look in looks
    ]
    cache: dict[str, list[Line]] = {}

    def preview(path: str) -> list[Line]:
        if path not in cache:
            cache[path] = _last_words(path, talk.screen.width - 3)
        return cache[path]

    dialog = Dialog("Go on with which session?", (), choices, search=True)
    dialog.preview = preview
    reply = await talk.prompt.ask(dialog)
    return reply.value if reply is not None else ""


def _seen(config: str, cwd: str) -> "list[tuple[Found, Glance]]":
    """Return the sessions of this folder, the newest first."""
    from steno.format.slugs import slug
    from steno.store.library import newest_first, seen

    folder = os.path.join(config, "projects", slug(os.path.realpath(cwd)))
    files = [each for each in newest_first(config) if os.path.dirname(each.path) == folder]
    return [pair for pair in seen(files[:_MOST]) if not pair[1].hidden]


def _when(look: "Glance", now: float) -> str:
    if look.ended is None:
        return look.branch
    when = f"{words.day(look.ended, now)} {words.clock(look.ended)}"
    return f"{look.branch}  {when}" if look.branch else when


def _last_words(path: str, columns: int) -> list[Line]:
    """Return what was said last in a session, and what was begun beside it and left."""
    from steno.console.tree import tree_lines
    from steno.session.session import Session
    from steno.session.transcript import load
    from steno.store.read import FileSource

    try:
        with Session(load(FileSource(path))) as session:
            return tree_lines(session, columns, _PREVIEWED)
    except OSError:
        return [[("  it cannot be read", "yellow")]]


async def _fork(talk: "Talk", arguments: str) -> None:
    """Go on in a copy of this session, or of another one."""
    from steno.agent.sessions import fork

    started = talk.started
    if started is None:
        return
    options = talk.ready.options
    path = await _picked(talk, arguments.strip()) if arguments.strip() else talk.written()
    if not path:
        talk.stream.note("there is nothing to copy yet", "dim")
        return
    before = os.path.splitext(os.path.basename(path))[0]
    work = await talk.reenter(partial(fork, options.config, path, options.cwd), tell=False)
    talk.stream.note(f"in a copy, {work.id[:8]}; /resume {before[:8]} goes back", "dim")


def _given(arguments: str, what: str, such_as: str) -> str:
    """Return the words behind a command that cannot do without them."""
    words_ = " ".join(arguments.split())
    if not words_:
        raise BadRequest(f"a {what} is missing", hint=f"such as {such_as}")
    return words_


async def _rename(talk: "Talk", arguments: str) -> None:
    title = _given(arguments, "title", "/rename Charts on one axis")
    if talk.started is not None:
        recorder = talk.started.agent.talk.recorder
        recorder.write(recorder.compose.title(title))
        talk.face.title(title)
        talk.stream.note(f"called {title!r} from now on", "dim")


async def _tag(talk: "Talk", arguments: str) -> None:
    tag = _given(arguments, "tag", "/tag release")
    if talk.started is not None:
        recorder = talk.started.agent.talk.recorder
        recorder.write({"type": "tag", "tag": tag, "sessionId": recorder.session_id})
        talk.stream.note(f"tagged {tag!r}", "dim")


async def _export(talk: "Talk", arguments: str) -> None:
    """Write the conversation as Markdown."""
    await _write(talk, arguments.strip(), redacted=False)


async def _share(talk: "Talk", arguments: str) -> None:
    """Write the same with everything masked that looks like a secret; nothing is sent anywhere."""
    await _write(talk, arguments.strip(), redacted=True)


async def _write(talk: "Talk", name: str, *, redacted: bool) -> None:
    started, path = talk.started, talk.written()
    if started is None or not path:
        talk.stream.note("there is nothing to write yet", "dim")
        return
    ending = "-redacted" if redacted else ""
    name = name or f"session-{started.agent.talk.recorder.session_id[:8]}{ending}.md"
    target = os.path.join(talk.ready.options.cwd, name)
    masked = await asyncio.to_thread(_exported, path, target, redacted=redacted)
    said = f"; {words.count(masked, 'place')} masked, look it over before you pass it on"
    talk.stream.note(f"written to {target}{said if redacted else ''}", "dim")


def _exported(path: str, target: str, *, redacted: bool) -> int:
    """Write a session as Markdown, as `steno export` does; return how much was masked."""
    from steno.report.export.files import Job, parts_of
    from steno.report.export.put import put_file
    from steno.safe.masking import Masker
    from steno.store.discover import found_at

    if os.path.lexists(target):
        raise BadRequest(f"{target} is there already", hint="give another name")
    masker = Masker() if redacted else None
    job = Job(format="markdown", level="low", masker=masker)
    put_file(target, parts_of(found_at(path), job), force=False)
    return masker.receipt.total if masker is not None else 0


async def _copy(talk: "Talk", arguments: str) -> None:
    """Put the last answer into the clipboard, as it was written; the terminal does it (OSC 52)."""
    del arguments
    started = talk.started
    answers = [
        text_of(each["content"])
        for each in (started.agent.talk.messages() if started is not None else ())
        if each["role"] == "assistant" and text_of(each["content"]).strip()
    ]
    if not answers:
        talk.stream.note("there is no answer yet", "dim")
        return
    talk.screen.send(f"\x1b]52;c;{b64encode(answers[-1].encode()).decode()}\a")
    size = words.count(len(answers[-1]), "letter")
    talk.stream.note(
        f"the last answer, {size}, is in the clipboard if your terminal lets it", "dim"
    )


async def _transcript(talk: "Talk", arguments: str) -> None:
    """Show everything that was said and done, in the pager."""
    del arguments
    path = talk.written()
    if not path:
        talk.stream.note("there is nothing to show yet", "dim")
        return
    plain = () if talk.screen.paint.colour else ("--color", "never")
    # What was done last is looked for most often: `less` begins there.
    pager = {"LESS": f"{os.environ.get('LESS', '-R')} +G"}
    await run_program(talk, own("show", path, "--thinking", "--all", *plain), pager)


COMMANDS: Final = (
    Command(
        name="resume",
        help="go on with another session",
        takes="[SESSION]",
        run=_resume,
        aliases=("continue",),
    ),
    Command(
        name="fork",
        help="go on in a copy of this session",
        takes="[SESSION]",
        run=_fork,
        aliases=("branch",),
    ),
    Command(
        name="rename", help="give this session a title", takes="TITLE", run=_rename, anytime=True
    ),
    Command(name="tag", help="tag this session", takes="TAG", run=_tag, anytime=True),
    Command(name="export", help="write it as Markdown", takes="[FILE]", run=_export, anytime=True),
    Command(
        name="share", help="the same, with secrets masked", takes="[FILE]", run=_share, anytime=True
    ),
    Command(name="copy", help="the last answer into the clipboard", run=_copy, anytime=True),
    Command(
        name="transcript",
        help="everything that was said and done (ctrl-o)",
        run=_transcript,
        anytime=True,
    ),
)
