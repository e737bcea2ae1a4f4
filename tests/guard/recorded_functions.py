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
from steno.guard.confinement.launcher import _concerns
from steno.guard.confinement.private_root import _changes
from steno.guard.confinement.trees import (
    CannotConfine,
    Trees,
    _unescape,
    inside,
    inside_any,
    parents,
    plan,
)
from steno.guard.content_readers import files_below, is_process_path
from steno.guard.decision import Decision
from steno.guard.denied_paths import denied_paths
from steno.guard.option_table import effect_by_name, tool_options
from steno.guard.paths import (
    Place,
    folded,
    holds_protected,
    is_inside,
    protected_paths,
    why_protected,
    why_secret,
)
from steno.guard.patterns import text_pattern
from steno.guard.program_environment import (
    _PROGRAMS,
    approved_environment,
    confined_environment,
    git_settings,
    program_folders,
    program_trees,
)
from steno.guard.readonly import repository_of
from steno.guard.repository import git_folders
from steno.guard.rules import Kind, Layer, Rule, Rules, gather, tool_of
from steno.guard.told import told, told_folder
from steno.guard.trust import Source, effect_of, own_files
from steno.guard.words import GAP, HOLE, harmless, harmless_before


def function_answer(line: str, project: Path) -> Iterator[str]:
    """Yield the answer to a question about the guard's functions."""
    base = str(project.parent)
    name, *words = shlex.split(line)
    words = [word.replace("BASE", base).replace("HOLE", HOLE).replace("GAP", GAP) for word in words]
    try:
        answer = list(_QUESTIONS[name](project, *words))
    except StenoError as error:
        answer = [f"{type(error).__name__}: {error}"]
    for each in answer:
        yield each.replace(base, "BASE").replace(HOLE, "HOLE").replace(GAP, "GAP")


def _pattern(_: Path, inside: str, *commands: str) -> Iterator[str]:
    pattern = text_pattern(inside)
    yield f"{pattern.text!r} names {pattern.named} words{', open' * pattern.is_open}"
    for command in commands:
        words = command.split(" ")
        yield (
            f"{command!r}: covers {pattern.covers(command)}, may {pattern.may_cover(command)},"
            f" unnamed {pattern.unnamed(words)}"
        )


def _gathered(project: Path, kind: str, *texts: str) -> Rules:
    layer = Layer(**{kind: texts})
    cwd = str(project / "src")
    return gather([layer], root=str(project), cwd=cwd, home=str(project.parent / "home"))


def _rule(project: Path, kind: str, *texts: str) -> Iterator[str]:
    rules = _gathered(project, kind, *texts)
    for each in get_args(Kind):
        for rule in getattr(rules, each):
            yield f"{each} {_shown(rule)}"
    yield from (f"problem: {problem}" for problem in rules.problems)


def _shown(rule: Rule) -> str:
    parts = [rule.tool, *([f"name {rule.name}"] if rule.name else [])]
    if rule.command is not None:
        parts.append(f"command {rule.command.text!r} {rule.command.named}")
    parts += [f"below {pattern.base} {pattern.pattern}" for pattern in rule.paths]
    return ", ".join(parts) + " bare" * rule.is_bare + " broken" * rule.broken


def _names(project: Path, rule: str, *tools: str) -> Iterator[str]:
    rules = _gathered(project, "deny", rule)
    for tool in tools:
        found = rules.about("deny", tool) + rules.about("ask", tool)
        yield f"{tool} ({tool_of(tool)}): {'named' if found else 'not named'}"


def _domain(project: Path, rule: str, *hosts: str) -> Iterator[str]:
    (found,) = _gathered(project, "deny", rule).deny
    for host in hosts:
        yield f"{host}: {found.fits_name(host)}, below {found.fits_name(host, below=True)}"


def _path(project: Path, inside: str, *paths: str) -> Iterator[str]:
    rules = _gathered(project, "deny", f"Read({inside})")
    for rule in rules.deny:
        yield _shown(rule)
        for path in paths:
            place = Place.of(path, str(project))
            covers = [pattern.covers(place) for pattern in rule.paths]
            touches = [pattern.touches(place) for pattern in rule.paths]
            yield f"{path}: covers {covers}, touches {touches}"
    yield from rules.problems


def _place(project: Path, path: str) -> Iterator[str]:
    place = Place.of(path, str(project))
    folders = (str(project), "relative")
    flags = {
        "broken": place.broken,
        "shared": place.is_shared,
        "inside": is_inside(place, folders),
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
    yield told(path, str(project), home.replace("BASE", str(project.parent)))


def _told_folder(project: Path, pattern: str, path: str = "") -> Iterator[str]:
    home = str(project.parent / "home")
    yield str(told_folder(pattern, path or None, str(project / "src"), home))


def _denied(project: Path, kind: str, tool: str, most: str, *texts: str) -> Iterator[str]:
    rules = _gathered(project, kind, *texts)
    folders = [str(project), str(project)]
    yield from sorted(denied_paths(rules, folders, tool=tool, most=int(most)))


def _settings(_: Path, source: Source, text: str) -> Iterator[str]:
    for trusted in (False, True):
        effect = effect_of(json.loads(text), source, trusted=trusted)
        taken = json.dumps(effect.settings, sort_keys=True)
        yield f"{'trusted' if trusted else 'not trusted'}: {taken}; held {' '.join(effect.held)}"


def _option(_: Path, *texts: str) -> Iterator[str]:
    for text in texts:
        effect, shown = effect_by_name(text)
        yield f"{text}: {effect or 'harmless'} ({shown})"


def _variable(_: Path, *names: str) -> Iterator[str]:
    for name in names:
        yield f"{name}: {harmless(name)}, before a program {harmless_before(name)}"


def _tool(_: Path, *names: str) -> Iterator[str]:
    for name in names:
        yield f"{name}: {tool_options(name).source or 'unknown'}"


def _repository(project: Path, path: str) -> Iterator[str]:
    yield repository_of(str(project / path)) or "none"
    yield from git_folders(str(project / path))


def _below(project: Path, path: str) -> Iterator[str]:
    for place in files_below(str(project / path)):
        yield place.path if place else "more"


def _own(project: Path, path: str) -> Iterator[str]:
    yield " ".join(own_files(str(project / path))) or "none"


def _folded(_: Path, *names: str) -> Iterator[str]:
    yield " ".join(ascii(folded(name.encode().decode("unicode_escape"))) for name in names)


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
    system = Trees()
    system.readable = {"/usr", str(project / "docs")}
    system.links = {"/bin": "usr/bin"}
    try:
        found = plan(policy, system)
    except CannotConfine as error:
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
    changes = _changes(found)
    yield "mounts " + " ".join(f"{path}={changes[path]}" for path in ordered(changes))


def _resolved(project: Path, path: str) -> Iterator[str]:
    trees = Trees()
    yield f"{trees.resolve(str(project) + '/' + path)}"
    yield " ".join(f"{link}->{target}" for link, target in trees.links.items())


def _inside(_: Path, path: str, *folders: str) -> Iterator[str]:
    yield " ".join(f"{folder}:{inside(path, folder)}" for folder in folders)
    yield f"any {inside_any(path, folders)}"
    yield "parents " + " ".join(parents(path, folders[0]))


def _mount(_: Path, line: str, *folders: str) -> Iterator[str]:
    yield f"{_concerns(line.encode(), {folder.encode() for folder in folders})}"


def _unescaped(_: Path, text: str) -> Iterator[str]:
    yield ascii(_unescape(text.encode()))


def _secret(_: Path, value: str, *names: str) -> Iterator[str]:
    """Say which variables with a value an approved program is not given, and a confined one is."""
    env = dict.fromkeys(names, value)
    approved = approved_environment(env)
    yield "kept back: " + " ".join(name for name in names if name not in approved)
    yield "given: " + " ".join(approved)
    confined = confined_environment({**env, "PATH": "/usr/bin"}, scratch="/scratch")
    yield "given confined: " + " ".join(f"{name}={confined[name]}" for name in sorted(confined))


def _programs(project: Path, path: str, *folders: str) -> Iterator[str]:
    within = tuple(str(project / folder) for folder in folders)
    env = {"PATH": path} if path else {}
    yield " ".join(program_folders(env, within))
    if str(project.parent / "more") in path:
        yield " ".join(program_trees(env, within))


def _git(_: Path, *names: str) -> Iterator[str]:
    """Say what is put in the place of a setting of a repository that names a program."""
    for name in names:
        values = [value for form, value in _PROGRAMS if form.fullmatch(name)]
        yield f"{name}: {values[0]!r}" if values else f"{name} is left"


def _git_variables(project: Path, alone: str) -> Iterator[str]:
    settings = git_settings([str(project), str(project)], alone=alone == "alone")
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
    names = sorted(
        str(Path(at, name).relative_to(folder))
        for at, _, files in os.walk(folder)
        for name in files
    )
    return Decision("allow", "shown: " + " ".join(filter(shown, names)))
