"""Runs shell commands in a sandbox: the sandbox policy of the settings, and the command runner.

The sandbox is never skipped silently: if it is not available, the agent does not start if the settings
require the sandbox; otherwise it runs without a sandbox and shows a notice. The runner reduces the
environment and sandboxes commands that were not approved; their access is computed for each command from
the current rules and files.
"""

import asyncio
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import msgspec

from steno.agent.config.settings import SandboxSettings, Settings
from steno.errors import BadRequest
from steno.format.client_settings import PROJECT_LAYERS
from steno.format.tool_catalogue import SHELL
from steno.permissions.file_permissions import denied_paths
from steno.permissions.git_repository import git_folders, git_run_folders
from steno.permissions.paths import protected_paths
from steno.permissions.permission_checker import PermissionChecker
from steno.permissions.permission_rules import ASKING_MODES, Decision, RuleSet, RuleSource, parse_rules
from steno.permissions.program_environment import (
    approved_environment,
    git_settings,
    program_and_library_folders,
    sandbox_environment,
)
from steno.permissions.sandbox.command_wrapper import (
    SandboxBackend,
    WrapperPolicy,
    find_backend,
    find_replaceable_link,
    wrap_command,
)
from steno.permissions.sandbox.launcher import SandboxedProcess, SandboxLauncher
from steno.permissions.sandbox.mechanisms import SandboxSupport, find_mechanisms, probe_sandbox
from steno.permissions.sandbox.policy import SandboxPolicy
from steno.permissions.shell.command import word_set
from steno.permissions.shell.command_paths import find_run_folders
from steno.permissions.shell.fixed_commands import fixed_paths
from steno.permissions.shell.nested_commands import program_name
from steno.permissions.shell.parser import parse_script
from steno.store.environment import home_dir, steno_home
from steno.tools.protocol import Execution, Streams

_CREDENTIAL_FILES: Final = (".credentials.json",)
"""Files in the config directories that sandboxed commands must not read."""


class SandboxRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The inputs for creating the sandbox."""

    cwd: str
    config: str
    env: dict[str, str]
    folders: tuple[str, ...] = ()
    """Additional directories in which commands may write."""
    requested: bool | None = None
    """Whether the caller requests a sandbox; None to use the settings."""


class CommandSandbox:
    """The sandbox of the settings; excluded commands run outside it."""

    def __init__(
        self,
        sandbox: SandboxBackend,
        policy: WrapperPolicy,
        settings: SandboxSettings,
        excluded: PermissionChecker | None,
    ) -> None:
        self.sandbox = sandbox
        self.policy = policy
        self.auto_allow = settings.auto_allow
        self.on_notice: Callable[[str], None] = lambda _words: None
        self._allows_unsandboxed = settings.allow_unsandboxed
        self._exclusions = excluded

    def facts(self) -> dict[str, Any]:
        """Return the sandbox state for the `init` event."""
        kind = self.sandbox.kind
        facts: dict[str, Any] = {"enabled": kind is not None, "kind": kind}
        return {**facts, "auto_allow": self.auto_allow, "summary": self.sandbox.summary}

    def prompt_text(self) -> str:
        """Return the text about the sandbox for the system prompt."""
        network = "unrestricted network access" if self.policy.network else "network access to localhost only"
        escape_hint = (
            "If a command needs more access, set `dangerouslyDisableSandbox`; the user must approve the call."
            if self._allows_unsandboxed
            else "Commands cannot run outside the sandbox."
        )
        return (
            "Bash commands run in a sandbox: they can write only in the working directory and "
            f"$TMPDIR, but not to .claude, .git/hooks or .git/config, and have {network}. {escape_hint}"
        )

    def runs_unsandboxed(self, command: str, *, requested: bool) -> bool:
        """Return whether a command runs outside the sandbox, by request or because it is excluded."""
        if requested and self._allows_unsandboxed:
            return True
        if self._exclusions is None:
            return False
        decision = self._exclusions.judge(SHELL, {"command": command}, cwd=self.policy.project)
        return decision.verdict == "allow" and bool(decision.rule)

    def __call__(self, argv: list[str], *, command: str, cwd: str, outside: bool) -> list[str]:
        """Return the arguments that run a command in the sandbox.

        Raises:
            BadRequest: The sandbox cannot be set up; the command must not run.
        """
        if self.runs_unsandboxed(command, requested=outside):
            self.on_notice(f"Ran outside the sandbox: {command}")
            return argv
        sandboxed_argv = wrap_command(argv, msgspec.structs.replace(self.policy, cwd=cwd), self.sandbox)
        if sandboxed_argv is None:
            raise BadRequest("the sandbox cannot be set up, so the command was not run")
        return sandboxed_argv

    def allows(self, tool: str, tool_input: dict[str, Any], decision: Decision, mode: str) -> Decision:
        """Return the decision on a call: a sandboxed command that no rule mentions needs no approval."""
        may_allow = self.auto_allow and mode in ASKING_MODES
        if tool != SHELL or decision.verdict != "ask" or decision.rule or not may_allow:
            return decision
        command = tool_input.get("command")
        unsandboxed_requested = bool(tool_input.get("dangerouslyDisableSandbox"))
        if not isinstance(command, str) or self.runs_unsandboxed(command, requested=unsandboxed_requested):
            return decision
        return Decision("allow", "runs in the sandbox")

    def close(self) -> None:
        """Remove the directory for temporary files."""
        import shutil

        shutil.rmtree(self.policy.tmp, ignore_errors=True)


def create_sandbox(
    request: SandboxRequest, settings: Settings, rules: RuleSet, notes: list[str]
) -> CommandSandbox | None:
    """Return the requested sandbox; None if it is disabled or optional and not available.

    Raises:
        BadRequest: The sandbox is required but not available, or managed settings require it
            and the caller disabled it.
    """
    sandbox_settings = settings.sandbox
    if request.requested is False and sandbox_settings.required_by_manager:
        raise BadRequest("managed settings require the sandbox", hint="Remove --no-sandbox.")
    if not (sandbox_settings.enabled if request.requested is None else request.requested):
        return None
    sandbox = find_backend()
    if sandbox.kind is None:
        if sandbox_settings.fail_if_unavailable:
            raise BadRequest(
                f"the sandbox is required but not available: {sandbox.summary}",
                hint="Install bubblewrap, or set `sandbox.failIfUnavailable` to false.",
            )
        notes.append(f"the sandbox is enabled but not available: {sandbox.summary}")
        return None
    if not sandbox.protects_project_rules:
        notes.append(sandbox.summary)
    return _build_sandbox(request, settings, rules, sandbox, notes)


def _build_sandbox(
    request: SandboxRequest, settings: Settings, rules: RuleSet, sandbox: SandboxBackend, notes: list[str]
) -> CommandSandbox:
    import tempfile

    sandbox_settings, home = settings.sandbox, home_dir(request.env)
    approval_reason = _approval_reason(sandbox, rules, request.cwd)
    if approval_reason and sandbox_settings.auto_allow:
        notes.append(f"sandboxed commands still need approval: {approval_reason}")
        sandbox_settings = msgspec.structs.replace(sandbox_settings, auto_allow=False)

    def resolve_paths(patterns: tuple[str, ...]) -> Iterator[str]:
        return (_resolve_path(path, request.cwd, home) for path in patterns)

    settings_folders = (rule.text for rule in settings.permissions.directories if rule.layer not in PROJECT_LAYERS)
    own_folders = (request.config, steno_home(request.env))
    secrets = (os.path.join(folder, name) for folder in own_folders for name in _CREDENTIAL_FILES)
    policy = WrapperPolicy(
        project=request.cwd,
        writable=tuple(resolve_paths((*request.folders, *settings_folders, *sandbox_settings.writable_paths))),
        kept=(
            *resolve_paths(sandbox_settings.read_only_paths),
            *_denied_paths_of(rules, "Edit"),
            *map(os.path.abspath, own_folders),
        ),
        hidden=(*resolve_paths(sandbox_settings.hidden_paths), *_denied_paths_of(rules, "Read"), *secrets),
        shown=tuple(resolve_paths(sandbox_settings.readable_paths)),
        network=sandbox_settings.network,
        tmp=tempfile.mkdtemp(prefix="steno-"),
    )
    return CommandSandbox(sandbox, policy, sandbox_settings, _exclusion_guard(sandbox_settings, request.cwd, home))


def _exclusion_guard(sandbox_settings: SandboxSettings, cwd: str, home: str) -> PermissionChecker | None:
    """Return a permission checker that allows only scripts whose commands are all excluded from the sandbox."""
    if not sandbox_settings.excluded_commands:
        return None
    allow = tuple(f"Bash({text if '*' in text else f'{text}:*'})" for text in sandbox_settings.excluded_commands)
    rules = parse_rules([RuleSource(allow=allow)], root=cwd, cwd=cwd, home=home)
    return PermissionChecker(rules, "default", cwd, (cwd,), read_only_commands=(), home=home)


def _approval_reason(sandbox: SandboxBackend, rules: RuleSet, cwd: str) -> str:
    """Return the reason why even sandboxed commands need approval; empty if they do not."""
    if not sandbox.protects_project_rules:
        return "this sandbox cannot protect files that configure other programs"
    link = find_replaceable_link(cwd)
    if link:
        return f"{link} is a symbolic link, which the sandbox cannot protect from being replaced"
    unenforceable = [rule for tool in ("Read", "Edit") for rule in _pattern_rules(rules, tool)]
    return f"the sandbox cannot enforce the rule {unenforceable[0]}" if unenforceable else ""


def _denied_paths_of(rules: RuleSet, tool: str) -> Iterator[str]:
    """Yield the paths of deny rules that name a single file or directory."""
    for rule in rules.for_tool("deny", tool):
        for pattern in rule.paths:
            literal = _literal_path(pattern.pattern)
            if literal:
                yield os.path.join(pattern.base, literal)


def _pattern_rules(rules: RuleSet, tool: str) -> Iterator[str]:
    """Yield the deny rules that the sandbox cannot enforce because their path has a wildcard."""
    for rule in rules.for_tool("deny", tool):
        if any(not _literal_path(pattern.pattern) for pattern in rule.paths):
            yield rule.text


def _literal_path(pattern: str) -> str:
    """Return the literal path of a pattern relative to its directory; empty for a wildcard pattern."""
    path = pattern.removesuffix("/**").removesuffix("/")
    anchored = "/" in path.lstrip("/") or path.startswith("/")
    return path.lstrip("/") if anchored and not set(path) & set("*?[!") else ""


def _resolve_path(path: str, cwd: str, home: str) -> str:
    if path == "~" or path.startswith("~/"):
        return os.path.join(home, path[2:])
    literal = path.removesuffix("/**")
    return os.path.normpath(os.path.join(cwd, literal)).replace("//", "/")


_GIT_WORD: Final = re.compile(r"\bgit\b")
# These programs run project code, which may call git anyway.
_PROJECT_RUNNERS: Final = word_set(
    "make gmake ninja cmake ctest just task bazel buck2 npm npx pnpm yarn bun bunx node deno jest vitest"
    " mocha tsx python python3 pytest tox nox uv uvx poetry hatch pdm pipenv cargo mvn mvnw gradle gradlew"
    " sbt dotnet rake bundle ruby rspec php composer phpunit mix elixir swift docker bash sh"
)
_GO_RUN_COMMANDS: Final = word_set("test run generate tool")
_PUSH_WORD: Final = re.compile(r"push|subtree|send-pack")


class ConfinedCommandRunner:
    """The command runner of an agent and its sub-agents; owns a scratch directory and a helper process."""

    def __init__(
        self, rules: RuleSet, folders: tuple[str, ...], env: Mapping[str, str], extra_variables: Iterable[str] = ()
    ) -> None:
        """Store the permission rules, the working directories and the names of variables from settings."""
        self.notice: Callable[[str], None] = lambda _words: None
        """Called with a message for the user if commands cannot be sandboxed."""
        self._rules = rules
        self._folders = folders
        self._env = env
        self.extra_variables = set(extra_variables)
        """Names of variables that settings and hooks define for commands."""
        self._launcher: SandboxLauncher | None = None
        self._scratch_folder = ""

    @cached_property
    def support(self) -> SandboxSupport:
        """The sandbox support of this machine, probed on first use."""
        return probe_sandbox(self._env)

    def can_confine(self) -> bool:
        """Return whether commands can be sandboxed on this machine; if not, notify the user."""
        if not self.support.usable:
            self.notice(self.support.summary)
        return self.support.usable

    @property
    def scratch(self) -> str:
        """The directory in which sandboxed commands may write, created on first use."""
        if not self._scratch_folder:
            import tempfile

            self._scratch_folder = os.path.realpath(tempfile.mkdtemp(prefix="steno-"))
        return self._scratch_folder

    async def environment(self, command: str, cwd: str, execution: Execution, env: dict[str, str]) -> dict[str, str]:
        """Return the environment for a command, derived from `env`."""
        calls_git = _has_word_matching(_GIT_WORD, command)
        if not execution.isolation:
            variables = approved_environment(env, self.extra_variables)
            if not execution.approved and (calls_git or _may_call_git(command)):
                variables |= await asyncio.to_thread(
                    git_settings,
                    _git_command_folders(command, cwd, env),
                    strict=calls_git,
                    pushes=_has_word_matching(_PUSH_WORD, command),
                )
            return variables
        scratch = "" if execution.isolation == "fixed" else self.scratch
        variables = sandbox_environment(env, scratch=scratch, folders=self._folders)
        if execution.isolation != "fixed":
            # Secrets are removed even if the user defines them, because the command was not reviewed.
            extra = {name: env[name] for name in self.extra_variables if name in env}
            variables = approved_environment(extra) | variables
        if calls_git:
            folders = _git_command_folders(command, cwd, env)
            edits = execution.isolation == "edit"
            variables |= await asyncio.to_thread(git_settings, folders, isolated=True, strict=edits)
        return variables

    async def start(
        self, argv: Sequence[str], *, command: str, cwd: str, edits: bool, env: dict[str, str], streams: Streams
    ) -> SandboxedProcess:
        """Start a sandboxed program; with `edits`, the working directories are writable.

        Raises:
            StenoError: The sandbox cannot be set up; the program was not run.
        """
        policy = await asyncio.to_thread(self._policy, command, cwd, env, edits=edits)
        if self._launcher is None:
            self._launcher = SandboxLauncher(find_mechanisms(self._env))
        return await self._launcher.start(
            argv, policy=policy, env=env, stdout=streams.stdout, stderr=streams.stderr, pass_fds=streams.more
        )

    async def close(self) -> None:
        """Terminate sandboxed processes and remove the scratch directory."""
        if self._launcher is not None:
            await self._launcher.close()
        if self._scratch_folder:
            import shutil

            await asyncio.to_thread(shutil.rmtree, self._scratch_folder, ignore_errors=True)
            self._scratch_folder = ""

    def _policy(self, command: str, cwd: str, env: dict[str, str], *, edits: bool) -> SandboxPolicy:
        repository = tuple(git_folders(cwd)) if _has_word_matching(_GIT_WORD, command) else ()
        return SandboxPolicy(
            cwd=cwd,
            readable=(*self._folders, *repository),
            scratch=self.scratch,
            writable=self._folders if edits else (),
            read_only=tuple(self._protected_paths()) if edits else (),
            denied=tuple(self._denied_paths(command)),
            programs=program_and_library_folders(env, self._folders),
        )

    def _denied_paths(self, command: str) -> Iterator[str]:
        yield from denied_paths(self._rules, self._folders)
        has_denied_reads = self._rules.for_tool("deny", "Read") or self._rules.for_tool("ask", "Read")
        if has_denied_reads and not _runs_git(command):
            # Committed content of a denied file can be read from the object database.
            for folder in self._folders:
                objects = os.path.join(os.path.realpath(folder), ".git", "objects")
                if os.path.isdir(objects):
                    yield objects

    def _protected_paths(self) -> Iterator[str]:
        # A missing path can only be created by a command that names it, which needs approval.
        for folder in self._folders:
            yield from filter(os.path.lexists, protected_paths(os.path.realpath(folder)))
        yield from denied_paths(self._rules, self._folders, tool="Edit")


def _git_command_folders(command: str, cwd: str, env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the directories in which the git commands of a script may run."""
    script = parse_script(command)
    folders = find_run_folders(script, cwd, env.get("HOME", "")).all
    run_folders = git_run_folders(script.all_commands(), folders) or folders
    return tuple(filter(os.path.isdir, run_folders))


def _may_call_git(command: str) -> bool:
    """Return whether a script may call git indirectly, other than by running project code."""
    for command_part in parse_script(command).all_commands():
        name = program_name(command_part.program)
        if name == "go" and any(word.text in _GO_RUN_COMMANDS for word in command_part.words[1:2]):
            continue
        only_reads = command_part.transparent or fixed_paths(command_part) is not None
        if name and name not in _PROJECT_RUNNERS and not only_reads:
            return True
    return False


def _has_word_matching(pattern: re.Pattern[str], command: str) -> bool:
    """Return whether the pattern matches the script or one of its unquoted words."""
    texts = (word.text for part in parse_script(command).all_commands() for word in part.words)
    return pattern.search(command) is not None or any(map(pattern.search, texts))


def _runs_git(command: str) -> bool:
    """Return whether git is one of the programs of a script, not only a word in it."""
    return any(program_name(part.program) == "git" for part in parse_script(command).all_commands())
