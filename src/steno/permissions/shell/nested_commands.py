"""Commands nested in the words of others: `sudo rm`, `find -exec`, `bash -c`, `rg --pre`.

Programs are looked up by the last part of their name. Nested commands are checked like any other command. If it is
unknown what a command runs, the command is opaque, and only a rule that names the words in question allows it.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from steno.permissions.shell.command import (
    UNKNOWN_PART,
    Assignment,
    Command,
    Redirection,
    Word,
    is_harmless_variable,
    literal_word,
    word_set,
)
from steno.permissions.shell.dangerous_options import DANGEROUS_OPTIONS, DangerousOptions, find_dangerous_use


class NestedCommands(msgspec.Struct, frozen=True):
    """The commands nested in a command, one level deep."""

    inner: tuple[Command, ...] = ()
    scripts: tuple[str, ...] = ()
    redirections: tuple[Redirection, ...] = ()
    reach: int = -1
    sealed: str = ""
    transparent: bool = False
    repeated: bool = False


class Wrapper(msgspec.Struct, frozen=True):
    """A program whose last words are another command."""

    flags: str = ""
    """Options without a value, as letters or as names with dashes."""
    values: str = ""
    """Options with a value."""
    skip: int = 0
    """Number of operands before the command."""
    transparent: bool = False


WRAPPERS: Final[Mapping[str, Wrapper]] = {
    "time": Wrapper("p", transparent=True),
    "nohup": Wrapper(transparent=True),
    "nice": Wrapper("", "n --adjustment", transparent=True),
    "timeout": Wrapper("v --foreground --preserve-status --verbose", "k s --kill-after --signal", 1, transparent=True),
    "stdbuf": Wrapper("", "i o e --input --output --error", transparent=True),
    "command": Wrapper("p", transparent=True),
    "builtin": Wrapper(transparent=True),
    "exec": Wrapper("c l", "a", transparent=True),
    "sudo": Wrapper("A b E H n P S k", "u g h p C r t T U D R --user --group"),
    "doas": Wrapper("n", "u C"),
    "setsid": Wrapper("f w c --fork --wait --ctty"),
    "ionice": Wrapper("t", "c n --class --classdata"),
    "chrt": Wrapper("b f i o r", "", 1),
    "taskset": Wrapper("c", "", 1),
    "chroot": Wrapper("", "--userspec --groups", 1),
    "busybox": Wrapper(),
    "toybox": Wrapper(),
    "flock": Wrapper("e n s x u F", "w E --timeout", 1),
    "caffeinate": Wrapper("d i m s u", "t w"),
    "cmd": Wrapper(),
}
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_]\w*)=(.*)", re.ASCII | re.DOTALL)
_UNKNOWN_WORDS: Final = "its arguments depend on a variable"


def program_name(program: str) -> str:
    """Return the last part of a program's path, in lower case and without `.exe`."""
    name = re.split(r"[/\\]", program)[-1].lower()
    return name.removesuffix(".exe")


def opaque(index: int, reason: str) -> NestedCommands:
    """Mark a command as opaque unless a rule names its words up to an index."""
    return NestedCommands(reach=index, sealed=reason)


def opaque_command(command: Command) -> NestedCommands:
    """Mark a command as opaque unless a rule names all of its words."""
    return opaque(len(command.words) - 1, _UNKNOWN_WORDS)


def nested_command(words: tuple[Word, ...], assignments: tuple[Assignment, ...] = ()) -> Command:
    """Return a nested command."""
    return Command(words=words, assignments=assignments)


def skip_options(words: tuple[Word, ...], wrapper: Wrapper) -> int | None:
    """Return the index of the first word after the options; None for an unknown option."""
    index = 1
    while index < len(words):
        text = words[index].text
        if not words[index].literal:
            return index if text and text[0] not in "-" + UNKNOWN_PART else None
        if text == "--":
            return index + 1
        if not text.startswith("-") or text == "-":
            return index
        if re.fullmatch(r"-[0-9]+", text) and words[0].text.endswith("nice"):
            index += 1
            continue
        length = _option_length(text, wrapper)
        if length is None:
            return None
        index += length
    return index


def _option_length(text: str, wrapper: Wrapper) -> int | None:
    """Return the number of words of an option with its value."""
    flags, values = wrapper.flags.split(), wrapper.values.split()
    if text.startswith("--"):
        name, separator, _ = text.partition("=")
        if name in values:
            return 1 if separator else 2
        return 1 if name in flags and not separator else None
    for index, letter in enumerate(text[1:], 2):
        if letter in values:
            return 1 if text[index:] else 2
        if letter not in flags:
            return None
    return 1


def unwrap(command: Command, wrapper: Wrapper) -> NestedCommands:
    """Return the command that a wrapper runs."""
    words = command.words
    name = program_name(words[0].text)
    if name == "command" and len(words) > 1 and words[1].text in {"-v", "-V"}:
        return NestedCommands()
    if name == "cmd":
        index: int | None = 2 if len(words) > 1 and words[1].text.lower() in {"/c", "/k"} else 1
    else:
        index = skip_options(words, wrapper)
    if index is None:
        return opaque_command(command)
    index += wrapper.skip
    assignments: list[Assignment] = []
    while name in {"sudo", "doas"} and index < len(words) and _ASSIGNMENT.fullmatch(words[index].text):
        assignments.append(_to_assignment(words[index]))
        index += 1
    if index >= len(words):
        return NestedCommands()
    if any(word.splits for word in words[:index]):
        return opaque_command(command)
    if name == "flock" and words[index].text in {"-c", "--command"}:
        return opaque_command(command)
    inner = nested_command(words[index:], tuple(assignments))
    return NestedCommands(inner=(inner,), reach=index, transparent=wrapper.transparent)


def _to_assignment(word: Word) -> Assignment:
    name, _, value = word.text.partition("=")
    return Assignment(name, Word(value, splits=word.splits))


def unwrap_env(command: Command) -> NestedCommands:
    """Return the command in `env NAME=value program …`."""
    words = command.words
    index = skip_options(words, Wrapper("i 0 v --ignore-environment --null --debug", "u --unset C --chdir"))
    if index is None or any(word.splits for word in words[:index]):
        return opaque_command(command)
    if any(re.match(r"-[A-Za-z]*C|--chdir", word.text) for word in words[1:index]):
        return opaque_command(command)
    assignments: list[Assignment] = []
    while index < len(words) and (words[index].text == "-" or "=" in words[index].text):
        if words[index].splits or not _ASSIGNMENT.match(words[index].text):
            return opaque_command(command)
        assignments.append(_to_assignment(words[index]))
        index += 1
    if index >= len(words):
        return NestedCommands()
    return NestedCommands(inner=(nested_command(words[index:], tuple(assignments)),), reach=index, transparent=True)


_XARGS_OPTIONS: Final = Wrapper(
    "0 r t p x --null --no-run-if-empty --verbose --exit --interactive",
    "n P L s d E a --max-args --max-procs --max-lines --max-chars --delimiter --arg-file --eof",
)


def unwrap_xargs(command: Command) -> NestedCommands:
    """Return the command in `xargs program …`, which gets more arguments from its input."""
    words = list(command.words)
    replacement = ""
    for option_index, word in enumerate(words[1:-1], 1):
        if not word.text.startswith("-") or not word.literal:
            break
        if word.text == "-I":
            replacement = words[option_index + 1].text
            del words[option_index : option_index + 2]
            break
    index = skip_options(tuple(words), _XARGS_OPTIONS)
    if index is None or any(word.splits for word in words[:index]) or UNKNOWN_PART in replacement:
        return opaque_command(command)
    nested_words = words[index:] or [literal_word("echo")]
    # Without -I, another option that was not parsed may still define a replacement string.
    if replacement:
        nested_words = [
            Word(nested_word.text.replace(replacement, UNKNOWN_PART), splits=nested_word.splits)
            for nested_word in nested_words
        ]
    else:
        nested_words.append(Word(UNKNOWN_PART, splits=True))
    offset = len(command.words) - len(words)
    return NestedCommands(inner=(nested_command(tuple(nested_words)),), reach=index + offset, transparent=True)


_SHELLS: Final = frozenset({"sh", "bash", "dash", "ash", "ksh", "mksh", "rbash"})
_OTHER_SHELLS: Final = frozenset({"zsh", "fish", "csh", "tcsh", "pwsh", "nu", "xonsh", "elvish"})
# Programs that run their arguments, or commands from a file or server.
_OPAQUE_PROGRAMS: Final = word_set(
    "parallel entr at batch crontab su runuser pkexec script expect screen tmux unshare nsenter"
    " systemd-run gdb lldb strace ltrace perf valgrind rlwrap unbuffer socat nc ncat hash enable"
    " bind complete shopt set fc coproc dbus-run-session powershell pwsh"
    " zsh fish csh tcsh nu xonsh elvish osascript make-shell"
)

_SCRIPT_OPTION: Final = re.compile(r"-[elnuvx]*c[elnuvx]*")
_SHELL_FLAGS: Final = re.compile(r"[-+][elnuvx]+")


def is_shell(program: str) -> bool:
    """Whether a program is a shell."""
    return program_name(program) in _SHELLS | _OTHER_SHELLS


def runs_code(program: str) -> bool:
    """Whether a program runs its arguments; such programs are never suggested as prefix rules."""
    name = re.sub(r"(?<=[a-z])[0-9.]+$", "", program_name(program))
    is_known = name in WRAPPERS or name in _OPAQUE_PROGRAMS or name in DANGEROUS_OPTIONS or name in _PROGRAM_PARSERS
    return is_known or name in {"source", "."} or is_shell(name)


def find_nested_commands(command: Command) -> NestedCommands:
    """Return the commands nested in a command."""
    words = command.words
    if not words or not words[0].literal:
        return NestedCommands()
    name = program_name(words[0].text)
    unversioned = re.sub(r"(?<=[a-z])[0-9.]+$", "", name)
    parse = _PROGRAM_PARSERS.get(name) or _PROGRAM_PARSERS.get(unversioned)
    if parse is not None:
        return parse(command)
    if name in _SHELLS:
        return _shell(command)
    if name in WRAPPERS:
        return unwrap(command, WRAPPERS[name])
    if (name in _OPAQUE_PROGRAMS or unversioned in _OPAQUE_PROGRAMS) and len(words) > 1:
        return opaque(len(words) - 1, f"{name} runs its arguments")
    if name in _OPAQUE_PROGRAMS and name in _OTHER_SHELLS:
        return opaque(0, "it reads commands from a file or standard input")
    dangerous_options = DANGEROUS_OPTIONS.get(name) or DANGEROUS_OPTIONS.get(unversioned)
    return _from_dangerous_options(command, dangerous_options) if dangerous_options is not None else NestedCommands()


def _shell(command: Command) -> NestedCommands:
    """Return the script in `bash -c script`; a script file counts as a word, anything else is opaque."""
    words = command.words
    external_script = opaque(len(words) - 1, "it reads commands from a file or standard input")
    if [word.text for word in words[1:]] in (["--version"], ["--help"]):
        return NestedCommands()
    for index, word in enumerate(words[1:], 1):
        if not word.literal:
            return external_script
        if _SCRIPT_OPTION.fullmatch(word.text):
            script = words[index + 1] if index + 1 < len(words) else None
            if script is None or not script.literal:
                return opaque_command(command)
            if script.text.startswith(("-", "+")):
                return opaque_command(command)
            return NestedCommands(scripts=(script.text,), reach=index + 1)
        if not word.text.startswith(("-", "+")):
            # A bare name may be looked up in PATH, or may not be a script.
            return NestedCommands(reach=index) if "/" in word.text or "." in word.text else external_script
        if not _SHELL_FLAGS.fullmatch(word.text):
            return external_script
    return external_script


def _eval(command: Command) -> NestedCommands:
    if any(not word.literal for word in command.words):
        return opaque_command(command)
    rest = [word.text for word in command.words[1:]]
    return NestedCommands(scripts=(" ".join(rest[1:] if rest[:1] == ["--"] else rest),), reach=len(command.words) - 1)


def _trap(command: Command) -> NestedCommands:
    words = command.words
    if len(words) == 1 or words[1].text in {"-l", "-p", "-", ""}:
        return NestedCommands()
    index = 2 if words[1].text == "--" else 1
    if index >= len(words) or not words[index].literal:
        return opaque_command(command)
    return NestedCommands(scripts=(words[index].text,), reach=index, repeated=True)


def _alias(command: Command) -> NestedCommands:
    if any(not word.literal for word in command.words):
        return opaque_command(command)
    scripts = tuple(w.text.partition("=")[2] for w in command.words[1:] if "=" in w.text)
    return NestedCommands(scripts=scripts, reach=len(command.words) - 1 if scripts else -1, repeated=True)


def _ssh(command: Command) -> NestedCommands:
    """Return the command in `ssh host words`; the remote shell parses the words again."""
    words = command.words
    index = skip_options(words, Wrapper("4 6 A a C f G g K k M N n q s T t V v X x Y y", "p l i b c e m"))
    if index is None or any(word.splits for word in words):
        return opaque_command(command)
    rest = words[index + 1 :]
    if not all(word.literal for word in rest):
        return opaque_command(command)
    if not rest:
        return opaque(len(words) - 1, "it opens a remote shell")
    return NestedCommands(scripts=(" ".join(word.text for word in rest),), reach=len(words) - 1)


def _watch(command: Command) -> NestedCommands:
    words = command.words
    index = skip_options(words, Wrapper("b c d e g t", "n --interval"))
    if index is None or any(not word.literal for word in words):
        return opaque_command(command)
    return NestedCommands(scripts=(" ".join(word.text for word in words[index:]),), reach=len(words) - 1)


_FIND_EXEC_OPTIONS: Final = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_FIND_WRITE_OPTIONS: Final = frozenset({"-fprint", "-fprint0", "-fls", "-fprintf"})


def _find(command: Command) -> NestedCommands:
    words = command.words
    inner: list[Command] = []
    writes: list[Redirection] = []
    reach = -1
    index = 1
    start = _find_start(words) + UNKNOWN_PART
    while index < len(words):
        word = words[index]
        if word.splits or word.text.startswith(UNKNOWN_PART):
            return opaque_command(command)
        if word.text in _FIND_EXEC_OPTIONS:
            # -execdir runs in the directory of the file, where its path starts with `./`.
            path_prefix = f"./{UNKNOWN_PART}" if word.text.endswith("dir") else start
            end = _find_end(words, index + 1)
            nested_words = tuple(Word(argument.text.replace("{}", path_prefix)) for argument in words[index + 1 : end])
            if not nested_words:
                return opaque_command(command)
            inner.append(nested_command(nested_words))
            reach = index = end
        elif word.text == "-delete":
            inner.append(nested_command((literal_word("rm"), Word(UNKNOWN_PART, splits=True))))
            reach = index
        elif word.text in _FIND_WRITE_OPTIONS and index + 1 < len(words):
            writes.append(Redirection(writes=True, target=words[index + 1]))
            index += 1
        index += 1
    return NestedCommands(inner=tuple(inner), redirections=tuple(writes), reach=min(reach, len(words) - 1))


def _find_start(words: tuple[Word, ...]) -> str:
    """Return the common start of the paths that find prints."""
    folders: list[str] = []
    for word in words[1:]:
        if word.text in {"-H", "-L", "-P"}:
            continue
        if word.text.startswith(("-", "(", "!")):
            break
        folders.append(word.text)
    if len(folders) > 1 or any(UNKNOWN_PART in folder for folder in folders):
        return ""
    return folders[0] if folders else "."


def _find_end(words: tuple[Word, ...], start: int) -> int:
    """Return the index of the end of an `-exec` command, as late as possible."""
    for index in range(start, len(words)):
        if words[index].text == ";":
            return index
        if words[index].text == "+" and words[index - 1].text == "{}":
            return index
    return len(words)


def _fd(command: Command) -> NestedCommands:
    words = command.words
    for index, word in enumerate(words[1:], 1):
        if word.splits or word.text.startswith(UNKNOWN_PART):
            return opaque_command(command)
        if re.fullmatch(r"-[a-zA-Z0-9]*[xX].*|--exec.*", word.text):
            if word.text not in {"-x", "-X", "--exec", "--exec-batch"} or index + 1 >= len(words):
                return opaque_command(command)
            nested_words = (
                *(Word(re.sub(r"\{.*?\}", UNKNOWN_PART, argument.text)) for argument in words[index + 1 :]),
                Word(UNKNOWN_PART),
            )
            return NestedCommands(inner=(nested_command(nested_words),), reach=len(words) - 1)
    return NestedCommands()


def _printf(command: Command) -> NestedCommands:
    words = command.words
    if len(words) > 1 and (words[1].splits or words[1].text[:1] in {UNKNOWN_PART, "-"}):
        return opaque_command(command)
    return NestedCommands()


def _test(command: Command) -> NestedCommands:
    for word in command.words[1:]:
        if word.splits or word.text[:1] == UNKNOWN_PART or word.text in {"-v", "-R"}:
            return opaque_command(command)
    return NestedCommands()


def _declaration(command: Command) -> NestedCommands:
    """`export NAME=value`, `read NAME`: a subscript in a name can run commands."""
    for word in command.words[1:]:
        name = word.text.partition("=")[0]
        if not re.fullmatch(r"-[a-zA-Z]*|[A-Za-z_]\w*", name, re.ASCII):
            return opaque_command(command)
        if not name.startswith("-") and not is_harmless_variable(name):
            return opaque(len(command.words) - 1, f"it sets {name}")
        if word.splits and "=" not in word.text:
            return opaque_command(command)
        if re.fullmatch(r"-[a-zA-Z]*[nif][a-zA-Z]*", name) and command.program != "read":
            return opaque_command(command)
    return NestedCommands()


def _from_dangerous_options(command: Command, dangerous_options: DangerousOptions) -> NestedCommands:
    usage = find_dangerous_use(command.words, dangerous_options)
    return NestedCommands(
        inner=tuple(nested_command(nested) for nested in usage.runs),
        redirections=tuple(Redirection(writes=True, target=each) for each in usage.writes),
        reach=usage.at,
        sealed=usage.why,
    )


_PROGRAM_PARSERS: Final[Mapping[str, Callable[[Command], NestedCommands]]] = {
    "env": unwrap_env,
    "xargs": unwrap_xargs,
    "eval": _eval,
    "trap": _trap,
    "alias": _alias,
    "ssh": _ssh,
    "watch": _watch,
    "find": _find,
    "gfind": _find,
    "fd": _fd,
    "fdfind": _fd,
    "printf": _printf,
    "test": _test,
    "export": _declaration,
    "declare": _declaration,
    "typeset": _declaration,
    "local": _declaration,
    "readonly": _declaration,
    "unset": _declaration,
    "read": _declaration,
    "getopts": _declaration,
    "mapfile": opaque_command,
    "readarray": opaque_command,
    "let": opaque_command,
    "wait": _declaration,
}
