"""Which session `steno chat` works in: a new one, one that goes on, a copy, an earlier state."""

import os
from typing import TYPE_CHECKING

from steno.cli.screen import complain
from steno.errors import BadRequest, InDialect, NotFound

if TYPE_CHECKING:
    from steno.agent.options import Options
    from steno.agent.sessions import Work
    from steno.cli.chat import Asked

__all__ = ["work_for"]


def work_for(asked: "Asked", options: "Options") -> "Work":
    """Return the session to work in."""
    from steno.agent.sessions import fork, new, rewind
    from steno.store.library import find

    if asked.session_id:
        _check_id(asked.session_id, options.config)
    if not asked.resume and not asked.go_on:
        for name, given in (("--fork-session", asked.fork), ("--rewind", asked.rewind)):
            if given:
                raise BadRequest(f"{name} needs a session", hint="add --continue or --resume")
        return new(options.config, options.cwd, session_id=asked.session_id)
    if asked.fork and asked.rewind:
        raise BadRequest("a fork is not taken back in one go", hint="fork first, then --rewind")
    if asked.session_id and not asked.fork:
        raise BadRequest("a session that goes on keeps its id", hint="add --fork-session")
    path = (
        find(asked.resume, cwd=options.cwd, archived=False).path
        if asked.resume
        else _newest(options)
    )
    if asked.fork:
        work = fork(options.config, path, options.cwd, session_id=asked.session_id)
    elif asked.rewind:
        work = rewind(path, options.cwd, asked.rewind)
    else:
        work = _resume(path, options)
    _warn_of_unsent_summary(path)
    return work


def _resume(path: str, options: "Options") -> "Work":
    """Return a session that goes on, in a converted copy where no client reads its file."""
    from steno.agent.sessions import fork, go_on

    try:
        work = go_on(path, options.cwd)
    except InDialect as error:
        work = fork(options.config, path, options.cwd)
        complain(str(error), f"it is left as it is; a converted copy goes on: {work.id}")
    return work


def _warn_of_unsent_summary(path: str) -> None:
    from steno.cli.unsent import warn_of_unsent_summary
    from steno.session.transcript import load
    from steno.store.read import FileSource

    name = os.path.splitext(os.path.basename(path))[0]
    warn_of_unsent_summary(load(FileSource(path)), name)


def _check_id(session_id: str, config: str) -> None:
    """Let only ids become names of files that clients find again, and no two sessions share one.

    Raises:
        BadRequest: it is no UUID, or there is a session of that id.
    """
    import uuid

    try:
        fits = str(uuid.UUID(session_id)) == session_id
    except ValueError:
        fits = False
    if not fits:
        raise BadRequest(
            f"{session_id!r} is no id for a session", hint="a UUID in small letters, with dashes"
        )
    projects = os.path.join(config, "projects")
    folders = os.listdir(projects) if os.path.isdir(projects) else []
    if any(os.path.exists(os.path.join(projects, each, f"{session_id}.jsonl")) for each in folders):
        raise BadRequest(
            f"there is a session {session_id} already", hint="--resume goes on with it"
        )


def _newest(options: "Options") -> str:
    """Return the newest session of this folder in which something was said."""
    from steno.format.slugs import slug

    folder = os.path.join(options.config, "projects", slug(os.path.realpath(options.cwd)))
    try:
        names = [name for name in os.listdir(folder) if name.endswith(".jsonl")]
    except OSError:
        names = []
    paths = [os.path.join(folder, name) for name in names if not name.startswith("agent-")]
    newest = sorted(paths, key=os.path.getmtime, reverse=True)
    found = next(filter(_has_words, newest), None)
    if found is None:
        raise NotFound("no session of this folder to go on with", hint="leave --continue out")
    return found


def _has_words(path: str) -> bool:
    """Whether somebody said something: of a prompt that a hook kept out only a note is left."""
    import re

    said = re.compile(rb'"type"\s*:\s*"(user|assistant)"')
    with open(path, "rb") as file:
        return any(said.search(line) for line in file)
