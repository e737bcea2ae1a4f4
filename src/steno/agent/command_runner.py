"""Runs the commands of an agent: with a reduced environment, and confined unless they are approved.

What a command may do while it is confined is worked out each time from the rules and from the files
as they are then.
"""

import asyncio
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

from steno.guard.confinement.launcher import ConfinedProcess, Launcher
from steno.guard.confinement.policy import Confinement
from steno.guard.confinement.probe import Support, find_mechanisms, probe_confinement
from steno.guard.denied_paths import denied_paths
from steno.guard.fixed_commands import fixed_paths
from steno.guard.moves import folders_of
from steno.guard.paths import protected_paths
from steno.guard.program_environment import (
    approved_environment,
    confined_environment,
    git_settings,
    program_trees,
)
from steno.guard.repository import git_folders
from steno.guard.repository_reach import git_run_folders
from steno.guard.rules import Rules
from steno.guard.shell import read_script
from steno.guard.words import names
from steno.guard.wrappers import base_name
from steno.tools.base import Execution, Streams

__all__ = ["ConfiningRunner"]

_GIT: Final = re.compile(r"\bgit\b")
# They run code of the project, which may call git as it likes.
_PROJECT_RUNNERS: Final = names(
    "make gmake ninja cmake ctest just task bazel buck2 npm npx pnpm yarn bun bunx node deno jest vitest"
    " mocha tsx python python3 pytest tox nox uv uvx poetry hatch pdm pipenv cargo mvn mvnw gradle gradlew"
    " sbt dotnet rake bundle ruby rspec php composer phpunit mix elixir swift docker bash sh"
)
_GO_RUNS: Final = names("test run generate tool")
_PUSH: Final = re.compile(r"push|subtree|send-pack")


class ConfiningRunner:
    """The runner of one agent and its sub-agents; it owns a scratch folder and a helper process."""

    def __init__(
        self,
        rules: Rules,
        folders: tuple[str, ...],
        env: Mapping[str, str],
        given: Iterable[str] = (),
    ) -> None:
        """Take the rules in force, the working folders, and the variables that settings give."""
        self.notice: Callable[[str], None] = lambda _words: None
        """Called with words for the user, when commands turn out not to be confinable."""
        self._rules = rules
        self._folders = folders
        self._env = env
        self.given = set(given)
        """Names of variables that settings and hooks give to commands."""
        self._launcher: Launcher | None = None
        self._scratch = ""

    @cached_property
    def support(self) -> Support:
        """What this machine offers to confine commands; it is tried when it is first asked for."""
        return probe_confinement(self._env)

    def confinable(self) -> bool:
        """Whether commands can be confined here; where not, the user is told once."""
        if not self.support.usable:
            self.notice(self.support.summary)
        return self.support.usable

    @property
    def scratch(self) -> str:
        """The folder that a confined command may write in; made when it is first needed."""
        if not self._scratch:
            import tempfile

            self._scratch = os.path.realpath(tempfile.mkdtemp(prefix="steno-"))
        return self._scratch

    async def environment(
        self, command: str, cwd: str, execution: Execution, env: dict[str, str]
    ) -> dict[str, str]:
        """Return the environment that a command gets of all there is."""
        calls_git = _mentions(_GIT, command)
        if not execution.isolation:
            found = approved_environment(env, self.given)
            if not execution.approved and (calls_git or _may_call_git(command)):
                found |= await asyncio.to_thread(
                    git_settings,
                    _folders_of(command, cwd, env),
                    strict=calls_git,
                    pushes=_mentions(_PUSH, command),
                )
            return found
        scratch = "" if execution.isolation == "fixed" else self.scratch
        found = confined_environment(env, scratch=scratch, folders=self._folders)
        if execution.isolation != "fixed":
            # Secrets are kept back also where the user gives them: nobody has seen the command.
            given = {name: env[name] for name in self.given if name in env}
            found = approved_environment(given) | found
        if calls_git:
            folders = _folders_of(command, cwd, env)
            edits = execution.isolation == "edit"
            found |= await asyncio.to_thread(git_settings, folders, alone=True, strict=edits)
        return found

    async def start(
        self,
        argv: Sequence[str],
        *,
        command: str,
        cwd: str,
        edits: bool,
        env: dict[str, str],
        streams: Streams,
    ) -> ConfinedProcess:
        """Start a confined program; with `edits` it may write in the working folders.

        Raises:
            StenoError: it cannot be confined; it was not run.
        """
        policy = await asyncio.to_thread(self._policy, command, cwd, env, edits=edits)
        if self._launcher is None:
            self._launcher = Launcher(find_mechanisms(self._env))
        return await self._launcher.start(
            argv,
            policy=policy,
            env=env,
            stdout=streams.stdout,
            stderr=streams.stderr,
            pass_fds=streams.more,
        )

    async def close(self) -> None:
        """End what is still running confined, and remove the scratch folder."""
        if self._launcher is not None:
            await self._launcher.close()
        if self._scratch:
            import shutil

            await asyncio.to_thread(shutil.rmtree, self._scratch, ignore_errors=True)
            self._scratch = ""

    def _policy(self, command: str, cwd: str, env: dict[str, str], *, edits: bool) -> Confinement:
        repository = tuple(git_folders(cwd)) if _mentions(_GIT, command) else ()
        return Confinement(
            cwd=cwd,
            readable=(*self._folders, *repository),
            scratch=self.scratch,
            writable=self._folders if edits else (),
            read_only=tuple(self._protected()) if edits else (),
            denied=tuple(self._denied(command)),
            programs=program_trees(env, self._folders),
        )

    def _denied(self, command: str) -> Iterator[str]:
        yield from denied_paths(self._rules, self._folders)
        hides = self._rules.about("deny", "Read") or self._rules.about("ask", "Read")
        if hides and not _runs_git(command):
            # What was committed of a denied file is readable there.
            for folder in self._folders:
                objects = os.path.join(os.path.realpath(folder), ".git", "objects")
                if os.path.isdir(objects):
                    yield objects

    def _protected(self) -> Iterator[str]:
        # One that is missing is named by whoever makes it, and was asked about then.
        for folder in self._folders:
            yield from filter(os.path.lexists, protected_paths(os.path.realpath(folder)))
        yield from denied_paths(self._rules, self._folders, tool="Edit")


def _folders_of(command: str, cwd: str, env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the folders that the git commands of a script may run in."""
    reading = read_script(command)
    moved = folders_of(reading, cwd, env.get("HOME", "")).all
    found = git_run_folders(reading.every(), moved) or moved
    return tuple(filter(os.path.isdir, found))


def _may_call_git(command: str) -> bool:
    """Whether a program of a script may call git and does not run the project's own code anyway."""
    for each in read_script(command).every():
        name = base_name(each.program)
        if name == "go" and any(word.text in _GO_RUNS for word in each.words[1:2]):
            continue
        reads = each.transparent or fixed_paths(each) is not None
        if name and name not in _PROJECT_RUNNERS and not reads:
            return True
    return False


def _mentions(pattern: re.Pattern[str], command: str) -> bool:
    """Whether the text of a script fits a pattern, or a word of it without its quotes."""
    words = (word.text for each in read_script(command).every() for word in each.words)
    return pattern.search(command) is not None or any(map(pattern.search, words))


def _runs_git(command: str) -> bool:
    """Whether git is one of the programs of a command, and not only a word in it."""
    return any(base_name(each.program) == "git" for each in read_script(command).every())
