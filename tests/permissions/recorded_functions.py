"""What functions of the guard answer, for tables of recorded answers (`functions-*.txt`).

A line is the name of a question and its arguments, quoted as for a shell. `BASE` stands for the
folder that the project is in.
"""

import json
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, get_args

from steno.errors import StenoError
from steno.format.client_settings import SettingsLayer
from steno.permissions.file_permissions import denied_paths
from steno.permissions.git_repository import git_folders
from steno.permissions.paths import (
    ResolvedPath,
    fold_name,
    holds_protected,
    protected_paths,
    resolve_glob,
    resolve_path,
    why_protected,
    why_secret,
)
from steno.permissions.paths import is_inside as is_resolved_inside
from steno.permissions.permission_rules import (
    Decision,
    PermissionRule,
    RuleKind,
    RuleSet,
    RuleSource,
    parse_command_pattern,
    parse_rules,
    rule_tool_name,
)
from steno.permissions.program_environment import (
    _PROGRAM_SETTINGS,
    approved_environment,
    git_settings,
    program_and_library_folders,
    program_folders,
    sandbox_environment,
)
from steno.permissions.project_trust import effective_files, filter_settings
from steno.permissions.sandbox.launcher import _affects_folders
from steno.permissions.sandbox.mount_namespace import _mount_plan
from steno.permissions.sandbox.path_plan import (
    PathPlan,
    SandboxSetupError,
    _unescape_mount,
    is_inside,
    is_inside_any,
    parent_folders,
    plan_paths,
)
from steno.permissions.shell.command import INNER_SPACE, UNKNOWN_PART, is_harmless_prefix, is_harmless_variable
from steno.permissions.shell.command_paths import files_below, is_process_path
from steno.permissions.shell.option_effects import effect_by_name, tool_options
from steno.permissions.shell.read_only_commands import find_repository


def function_answer(line: str, project: Path) -> Iterator[str]:
    """Yield the answer to a question about the guard's functions."""
    base = str(project.parent)
    name, *words = shlex.split(line)
    words = [word.replace("BASE", base).replace("HOLE", UNKNOWN_PART).replace("GAP", INNER_SPACE) for word in words]
    try:
        answer = list(_QUESTIONS[name](project, *words))
    except StenoError as error:
        answer = [f"{type(error).__name__}: {error}"]
    for each in answer:
        yield each.replace(base, "BASE").replace(UNKNOWN_PART, "HOLE").replace(INNER_SPACE, "GAP")


def _pattern(_: Path, inside: str, *commands: str) -> Iterator[str]:
    pattern = parse_command_pattern(inside)
    yield f"{pattern.text!r} names {pattern.named} words{', open' * pattern.has_wildcard}"
    for command in commands:
        words = command.split(" ")
        yield (
            f"{command!r}: covers {pattern.matches(command)}, may {pattern.may_match(command)},"
            f" unnamed {pattern.wildcard_words(words)}"
        )


def _gathered(project: Path, kind: str, *texts: str) -> RuleSet:
    layer = RuleSource(**{kind: texts})
    cwd = str(project / "src")
    return parse_rules([layer], root=str(project), cwd=cwd, home=str(project.parent / "home"))


def _rule(project: Path, kind: str, *texts: str) -> Iterator[str]:
    rules = _gathered(project, kind, *texts)
    for each in get_args(RuleKind):
        for rule in getattr(rules, each):
            yield f"{each} {_shown(rule)}"
    yield from (f"problem: {problem}" for problem in rules.problems)


def _shown(rule: PermissionRule) -> str:
    parts = [rule.tool, *([f"name {rule.name}"] if rule.name else [])]
    if rule.command is not None:
        parts.append(f"command {rule.command.text!r} {rule.command.named}")
    parts += [f"below {pattern.base} {pattern.pattern}" for pattern in rule.paths]
    return ", ".join(parts) + " bare" * rule.covers_all_calls + " broken" * rule.broken


def _names(project: Path, rule: str, *tools: str) -> Iterator[str]:
    rules = _gathered(project, "deny", rule)
    for tool in tools:
        found = rules.for_tool("deny", tool) + rules.for_tool("ask", tool)
        yield f"{tool} ({rule_tool_name(tool)}): {'named' if found else 'not named'}"


def _domain(project: Path, rule: str, *hosts: str) -> Iterator[str]:
    (found,) = _gathered(project, "deny", rule).deny
    for host in hosts:
        yield f"{host}: {found.matches_name(host)}, below {found.matches_name(host, include_subdomains=True)}"


def _path(project: Path, inside: str, *paths: str) -> Iterator[str]:
    rules = _gathered(project, "deny", f"Read({inside})")
    for rule in rules.deny:
        yield _shown(rule)
        for path in paths:
            place = ResolvedPath.of(path, str(project))
            covers = [pattern.matches_real_path(place) for pattern in rule.paths]
            touches = [pattern.matches_any_name(place) for pattern in rule.paths]
            yield f"{path}: covers {covers}, touches {touches}"
    yield from rules.problems


def _place(project: Path, path: str) -> Iterator[str]:
    place = ResolvedPath.of(path, str(project))
    folders = (str(project), "relative")
    flags = {
        "broken": place.broken,
        "shared": place.is_shared,
        "inside": is_resolved_inside(place, folders),
        "holds protected": holds_protected(place, folders),
        "process": is_process_path(place.path),
    }
    # Where the names of processes and their descriptors lead to depends on who looks.
    if not path.startswith(("/proc/self", "/dev/")):
        yield f"{place.path} -> {place.real}"
        yield "parts " + " and ".join("/" + "/".join(parts) for parts in place.all_parts)
    yield ", ".join(name for name, value in flags.items() if value) or "plain"
    for name, why in (("protected", why_protected(place)), ("secret", why_secret(place))):
        if why:
            yield f"{name}: {why}"


def _told(project: Path, path: str, home: str = "BASE/home") -> Iterator[str]:
    yield resolve_path(path, str(project), home.replace("BASE", str(project.parent)))


def _told_folder(project: Path, pattern: str, path: str = "") -> Iterator[str]:
    home = str(project.parent / "home")
    yield str(resolve_glob(pattern, path or None, str(project / "src"), home))


def _denied(project: Path, kind: str, tool: str, most: str, *texts: str) -> Iterator[str]:
    rules = _gathered(project, kind, *texts)
    folders = [str(project), str(project)]
    yield from sorted(denied_paths(rules, folders, tool=tool, max_entries=int(most)))


def _settings(_: Path, source: SettingsLayer, text: str) -> Iterator[str]:
    for trusted in (False, True):
        effect = filter_settings(json.loads(text), source, trusted=trusted)
        taken = json.dumps(effect.settings, sort_keys=True)
        yield f"{'trusted' if trusted else 'not trusted'}: {taken}; held {' '.join(effect.held)}"


def _option(_: Path, *texts: str) -> Iterator[str]:
    for text in texts:
        effect, shown = effect_by_name(text)
        yield f"{text}: {effect or 'harmless'} ({shown})"


def _variable(_: Path, *names: str) -> Iterator[str]:
    for name in names:
        yield f"{name}: {is_harmless_variable(name)}, before a program {is_harmless_prefix(name)}"


def _tool(_: Path, *names: str) -> Iterator[str]:
    for name in names:
        yield f"{name}: {tool_options(name).source or 'unknown'}"


def _repository(project: Path, path: str) -> Iterator[str]:
    yield find_repository(str(project / path)) or "none"
    yield from git_folders(str(project / path))


def _below(project: Path, path: str) -> Iterator[str]:
    for place in files_below(str(project / path)):
        yield place.path if place else "more"


def _own(project: Path, path: str) -> Iterator[str]:
    yield " ".join(effective_files(str(project / path))) or "none"


def _folded(_: Path, *names: str) -> Iterator[str]:
    yield " ".join(ascii(fold_name(name.encode().decode("unicode_escape"))) for name in names)


def _protected(project: Path) -> Iterator[str]:
    yield from protected_paths(str(project))


def _trees(project: Path, *words: str) -> Iterator[str]:
    """Plan the trees of a policy: `readable=src`, `denied=.env`, with paths below the project."""
    policy: dict[str, Any] = {"cwd": str(project), "scratch": str(project / "empty")}
    policy |= {name: [] for name in ("readable", "writable", "read_only", "denied", "programs")}
    for word in words:
        name, _, path = word.partition("=")
        full = str(Path(project, path)) if path != ".." else str(project) + "/.."
        if isinstance(policy[name], list):
            policy[name].append(full)
        else:
            policy[name] = full
    system = PathPlan()
    system.readable = {"/usr", str(project / "docs")}
    system.links = {"/bin": "usr/bin"}
    try:
        found = plan_paths(policy, system)
    except SandboxSetupError as error:
        yield f"refused: {error}"
        return
    base = str(project.parent)

    def ordered(paths: Iterable[str]) -> list[str]:
        return sorted(paths, key=lambda path: path.replace(base, ""))

    for name in ("cwd", "scratch"):
        yield f"{name} {getattr(found, name)}"
    yield "links " + " ".join(f"{link}->{found.links[link]}" for link in ordered(found.links))
    for name in ("readable", "writable", "denied", "read_only", "missing"):
        yield f"{name} {' '.join(ordered(getattr(found, name)))}"
    changes = _mount_plan(found)
    yield "mounts " + " ".join(f"{path}={changes[path]}" for path in ordered(changes))


def _resolved(project: Path, path: str) -> Iterator[str]:
    trees = PathPlan()
    yield f"{trees.resolve(str(project) + '/' + path)}"
    yield " ".join(f"{link}->{target}" for link, target in trees.links.items())


def _inside(_: Path, path: str, *folders: str) -> Iterator[str]:
    yield " ".join(f"{folder}:{is_inside(path, folder)}" for folder in folders)
    yield f"any {is_inside_any(path, folders)}"
    yield "parents " + " ".join(parent_folders(path, folders[0]))


def _mount(_: Path, line: str, *folders: str) -> Iterator[str]:
    yield f"{_affects_folders(line.encode(), {folder.encode() for folder in folders})}"


def _unescaped(_: Path, text: str) -> Iterator[str]:
    yield ascii(_unescape_mount(text.encode()))


def _secret(_: Path, value: str, *names: str) -> Iterator[str]:
    """Say which variables with a value an approved program is not given, and a confined one is."""
    env = dict.fromkeys(names, value)
    approved = approved_environment(env)
    yield "kept back: " + " ".join(name for name in names if name not in approved)
    yield "given: " + " ".join(approved)
    confined = sandbox_environment({**env, "PATH": "/usr/bin"}, scratch="/scratch")
    yield "given confined: " + " ".join(f"{name}={confined[name]}" for name in sorted(confined))


def _programs(project: Path, path: str, *folders: str) -> Iterator[str]:
    within = tuple(str(project / folder) for folder in folders)
    env = {"PATH": path} if path else {}
    yield " ".join(program_folders(env, within))
    if str(project.parent / "more") in path:
        yield " ".join(program_and_library_folders(env, within))


def _git(_: Path, *names: str) -> Iterator[str]:
    """Say what is put in the place of a setting of a repository that names a program."""
    for name in names:
        values = [value for form, value in _PROGRAM_SETTINGS if form.fullmatch(name)]
        yield f"{name}: {values[0]!r}" if values else f"{name} is left"


def _git_variables(project: Path, alone: str) -> Iterator[str]:
    settings = git_settings([str(project), str(project)], isolated=alone == "alone")
    for at in range(int(settings.pop("GIT_CONFIG_COUNT"))):
        name, value = (settings.pop(f"GIT_CONFIG_{part}_{at}") for part in ("KEY", "VALUE"))
        # The folders that the machine calls safe are not those of another machine.
        if name != "safe.directory":
            yield f"{name} = {value}"
    yield from (f"{name}={settings[name]}" for name in sorted(settings))


_QUESTIONS: Final[Mapping[str, Callable[..., Iterator[str]]]] = {
    "pattern": _pattern,
    "rule": _rule,
    "names": _names,
    "domain": _domain,
    "path": _path,
    "place": _place,
    "told": _told,
    "told-folder": _told_folder,
    "denied": _denied,
    "settings": _settings,
    "option": _option,
    "variable": _variable,
    "tool": _tool,
    "repository": _repository,
    "below": _below,
    "own": _own,
    "folded": _folded,
    "protected": _protected,
    "secret": _secret,
    "programs": _programs,
    "git": _git,
    "git-variables": _git_variables,
    "trees": _trees,
    "resolve": _resolved,
    "inside": _inside,
    "mount": _mount,
    "unescape": _unescaped,
}


def call(line: str, base: str) -> tuple[str, dict[str, Any]]:
    """Return the tool and the input that a line of a table of calls gives."""
    tool, *words = shlex.split(line.replace("BASE", base))
    given = dict(word.split("=", 1) for word in words)
    return tool, {key: int(value) if value == "0" else value for key, value in given.items()}


def search_answer(shown: Callable[[str], bool], folder: Path) -> Decision:
    """Return which names below a folder a search may show, as a decision that can be recorded."""
    names = sorted(str(Path(at, name).relative_to(folder)) for at, _, files in os.walk(folder) for name in files)
    return Decision("allow", "shown: " + " ".join(filter(shown, names)))
