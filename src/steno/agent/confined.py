"""The sandbox of one agent: which commands run in it, what they may do there, and what is said.

It is never left out in silence: where one is asked for and there is none, nothing starts, unless
the settings say that it may; and then that is told.
"""

import os
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from steno.agent.sandbox_settings import SandboxSettings
from steno.agent.settings import Settings
from steno.agent.settings_layers import OF_PROJECT
from steno.errors import BadRequest
from steno.format.tool_catalogue import SHELL
from steno.guard.decision import Decision
from steno.guard.judge import Guard
from steno.guard.rules import Layer, Rules, gather
from steno.guard.sandbox import Policy, Sandbox, find_sandbox, replaceable, wrap
from steno.store.places import home_dir, steno_home

__all__ = ["Confined", "Setting", "confine"]

_SECRETS: Final = (".credentials.json",)
_MODES: Final = frozenset({"default", "acceptEdits"})
"""The modes in which a command that is confined needs no consent."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """What the sandbox is made for."""

    cwd: str
    config: str
    env: dict[str, str]
    folders: tuple[str, ...] = ()
    """Further folders to work in that the caller named."""
    wanted: bool | None = None
    """Whether the caller wants one; None when they say nothing."""


class Confined:
    """Runs commands confined, but for those that are meant to run outside."""

    def __init__(
        self, sandbox: Sandbox, policy: Policy, settings: SandboxSettings, excluded: Guard | None
    ) -> None:
        self.sandbox = sandbox
        self.policy = policy
        self.auto_allow = settings.auto_allow
        self.notice: Callable[[str], None] = lambda _words: None
        self._outside = settings.outside
        self._excluded = excluded

    def facts(self) -> dict[str, Any]:
        """Return what whoever looks on should know."""
        kind = self.sandbox.kind
        facts: dict[str, Any] = {"enabled": kind is not None, "kind": kind}
        return {**facts, "autoAllow": self.auto_allow, "says": self.sandbox.words}

    def told(self) -> str:
        """Return what the model should know, so that it does not wonder about refusals."""
        network = "the network as it is" if self.policy.network else "no network but this machine's"
        out = (
            "If a command has to do more, set `dangerouslyDisableSandbox`: the user is then asked."
            if self._outside
            else "There is no way to run a command outside of it."
        )
        return (
            "Commands of Bash run in a sandbox: they can write in the working folder and in "
            f"$TMPDIR only, not in .claude, .git/hooks or .git/config, and have {network}. {out}"
        )

    def is_outside(self, command: str, *, asked: bool) -> bool:
        """Whether a command runs outside: because it was asked for, or is one of those that do."""
        if asked and self._outside:
            return True
        if self._excluded is None:
            return False
        said = self._excluded.judge(SHELL, {"command": command}, cwd=self.policy.project)
        return said.verdict == "allow" and bool(said.rule)

    def __call__(self, argv: list[str], *, command: str, cwd: str, outside: bool) -> list[str]:
        """Return the arguments that run a command; the tools call it.

        Raises:
            BadRequest: it cannot be confined; it is not run then.
        """
        if self.is_outside(command, asked=outside):
            self.notice(f"This ran outside the sandbox: {command}")
            return argv
        made = wrap(argv, msgspec.structs.replace(self.policy, cwd=cwd), self.sandbox)
        if made is None:
            raise BadRequest("the command cannot be confined, so it was not run")
        return made

    def allows(self, tool: str, given: dict[str, Any], said: Decision, mode: str) -> Decision:
        """Return a decision on a call; what is confined, and no rule is about, needs no consent."""
        free = self.auto_allow and mode in _MODES
        if tool != SHELL or said.verdict != "ask" or said.rule or not free:
            return said
        command = given.get("command")
        asked = bool(given.get("dangerouslyDisableSandbox"))
        if not isinstance(command, str) or self.is_outside(command, asked=asked):
            return said
        return Decision("allow", "it runs in the sandbox")

    def close(self) -> None:
        """Remove the folder for temporary files."""
        import shutil

        shutil.rmtree(self.policy.tmp, ignore_errors=True)


def confine(
    setting: Setting, settings: Settings, rules: Rules, notes: list[str]
) -> Confined | None:
    """Return the sandbox that is asked for; None when none is, or there may be none.

    Raises:
        BadRequest: one is asked for and there is none here, or the machine's manager wants one
            and the caller does not.
    """
    asked = settings.sandbox
    if setting.wanted is False and asked.demanded:
        raise BadRequest("the settings of this machine demand a sandbox", hint="see --no-sandbox")
    if not (asked.enabled if setting.wanted is None else setting.wanted):
        return None
    found = find_sandbox()
    if found.kind is None:
        if asked.required:
            raise BadRequest(
                f"a sandbox is asked for, but {found.words}",
                hint="install bubblewrap, or set `sandbox.failIfUnavailable` to false",
            )
        notes.append(f"a sandbox is asked for, but {found.words}")
        return None
    if not found.keeps:
        notes.append(found.words)
    return _made(setting, settings, rules, found, notes)


def _made(
    setting: Setting, settings: Settings, rules: Rules, found: Sandbox, notes: list[str]
) -> Confined:
    import tempfile

    asked, home = settings.sandbox, home_dir(setting.env)
    why = _why_ask(found, rules, setting.cwd)
    if why and asked.auto_allow:
        notes.append(f"commands are asked about as ever, although there is a sandbox: {why}")
        asked = msgspec.structs.replace(asked, auto_allow=False)

    def places(paths: tuple[str, ...]) -> Iterator[str]:
        return (_place(path, setting.cwd, home) for path in paths)

    more = (rule.text for rule in settings.permissions.directories if rule.layer not in OF_PROJECT)
    own = (setting.config, steno_home(setting.env))
    secrets = (os.path.join(folder, name) for folder in own for name in _SECRETS)
    policy = Policy(
        project=setting.cwd,
        writable=tuple(places((*setting.folders, *more, *asked.writable))),
        kept=(*places(asked.kept), *_forbidden(rules, "Edit"), *map(os.path.abspath, own)),
        hidden=(*places(asked.hidden), *_forbidden(rules, "Read"), *secrets),
        shown=tuple(places(asked.shown)),
        network=asked.network,
        tmp=tempfile.mkdtemp(prefix="steno-"),
    )
    return Confined(found, policy, asked, _excluding(asked, setting.cwd, home))


def _excluding(asked: SandboxSettings, cwd: str, home: str) -> Guard | None:
    """Return a guard that allows nothing but commands which run outside, every part of them."""
    if not asked.excluded:
        return None
    allow = tuple(f"Bash({text if '*' in text else f'{text}:*'})" for text in asked.excluded)
    rules = gather([Layer(allow=allow)], root=cwd, cwd=cwd, home=home)
    return Guard(rules, "default", cwd, (cwd,), read_only_commands=(), home=home)


def _why_ask(found: Sandbox, rules: Rules, cwd: str) -> str:
    """Return why a command needs consent although it is confined."""
    if not found.keeps:
        return "files that others act on cannot be kept from changes here"
    link = replaceable(cwd)
    if link:
        return f"{link} is a link, which cannot be kept from being replaced"
    loose = [rule for kind in ("Read", "Edit") for rule in _unheld(rules, kind)]
    return f"the rule {loose[0]} cannot be held to in it" if loose else ""


def _forbidden(rules: Rules, tool: str) -> Iterator[str]:
    """Yield the files and folders that rules forbid, where they name one."""
    for rule in rules.about("deny", tool):
        for pattern in rule.paths:
            path = _plain(pattern.pattern)
            if path:
                yield os.path.join(pattern.base, path)


def _unheld(rules: Rules, tool: str) -> Iterator[str]:
    """Yield rules that forbid files by more than a plain path: no sandbox knows patterns."""
    for rule in rules.about("deny", tool):
        if any(not _plain(each.pattern) for each in rule.paths):
            yield rule.text


def _plain(pattern: str) -> str:
    """Return the path that a pattern stands for, from its folder on; nothing if for several."""
    path = pattern.removesuffix("/**").removesuffix("/")
    anchored = "/" in path.lstrip("/") or path.startswith("/")
    return path.lstrip("/") if anchored and not set(path) & set("*?[!") else ""


def _place(path: str, cwd: str, home: str) -> str:
    if path == "~" or path.startswith("~/"):
        return os.path.join(home, path[2:])
    plain = path.removesuffix("/**")
    return os.path.normpath(os.path.join(cwd, plain)).replace("//", "/")
