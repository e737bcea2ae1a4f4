"""Programs whose words end in another command: `sudo rm`, `timeout 5 make`, `xargs grep`."""

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from steno.guard.words import HOLE, Assignment, Command, Redirection, Word, literal

__all__ = [
    "WRAPPERS",
    "Hidden",
    "Wrapper",
    "after_options",
    "base_name",
    "env",
    "run",
    "seal",
    "seal_all",
    "wrapped",
    "xargs",
]


class Hidden(msgspec.Struct, frozen=True):
    """What a command runs besides itself; what hides in the inner ones is not unfolded yet."""

    inner: tuple[Command, ...] = ()
    scripts: tuple[str, ...] = ()
    redirections: tuple[Redirection, ...] = ()
    reach: int = -1
    sealed: str = ""
    transparent: bool = False
    repeated: bool = False


class Wrapper(msgspec.Struct, frozen=True):
    """A program whose words end in another command."""

    flags: str = ""
    """Options that stand alone, by their letters or, with dashes, by their names."""
    values: str = ""
    """Options that take a value."""
    skip: int = 0
    """How many words stand before the command."""
    transparent: bool = False


WRAPPERS: Final[Mapping[str, Wrapper]] = {
    "time": Wrapper("p", transparent=True),
    "nohup": Wrapper(transparent=True),
    "nice": Wrapper("", "n --adjustment", transparent=True),
    "timeout": Wrapper(
        "v --foreground --preserve-status --verbose",
        "k s --kill-after --signal",
        1,
        transparent=True,
    ),
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
_NAME: Final = re.compile(r"([A-Za-z_]\w*)=(.*)", re.ASCII | re.DOTALL)
_UNKNOWN: Final = "its words are not known before it runs"


def base_name(program: str) -> str:
    """Return the last part of a program's name, as tables know it."""
    name = re.split(r"[/\\]", program)[-1].lower()
    return name.removesuffix(".exe")


def seal(at: int, why: str) -> Hidden:
    """Say that nobody knows what a command runs, unless a rule names it up to a word."""
    return Hidden(reach=at, sealed=why)


def seal_all(command: Command) -> Hidden:
    """Say that only a rule which names every word knows what a command runs."""
    return seal(len(command.words) - 1, _UNKNOWN)


def run(words: tuple[Word, ...], assignments: tuple[Assignment, ...] = ()) -> Command:
    """Return a command that another runs."""
    return Command(words=words, assignments=assignments)


def after_options(words: tuple[Word, ...], wrapper: Wrapper) -> int | None:
    """Return where the words after the options begin; None when an option is not known."""
    at = 1
    while at < len(words):
        text = words[at].text
        if not words[at].literal:
            return at if text and text[0] not in "-" + HOLE else None
        if text == "--":
            return at + 1
        if not text.startswith("-") or text == "-":
            return at
        if re.fullmatch(r"-[0-9]+", text) and words[0].text.endswith("nice"):
            at += 1
            continue
        step = _option(text, wrapper)
        if step is None:
            return None
        at += step
    return at


def _option(text: str, wrapper: Wrapper) -> int | None:
    """Return how many words an option takes with its value."""
    flags, values = wrapper.flags.split(), wrapper.values.split()
    if text.startswith("--"):
        name, given, _ = text.partition("=")
        if name in values:
            return 1 if given else 2
        return 1 if name in flags and not given else None
    for place, letter in enumerate(text[1:], 2):
        if letter in values:
            return 1 if text[place:] else 2
        if letter not in flags:
            return None
    return 1


def wrapped(command: Command, wrapper: Wrapper) -> Hidden:
    """Return the command at the end of the words of another."""
    words = command.words
    name = base_name(words[0].text)
    if name == "command" and len(words) > 1 and words[1].text in {"-v", "-V"}:
        return Hidden()
    if name == "cmd":
        at: int | None = 2 if len(words) > 1 and words[1].text.lower() in {"/c", "/k"} else 1
    else:
        at = after_options(words, wrapper)
    if at is None:
        return seal_all(command)
    at += wrapper.skip
    sets: list[Assignment] = []
    while name in {"sudo", "doas"} and at < len(words) and _NAME.fullmatch(words[at].text):
        sets.append(_set(words[at]))
        at += 1
    if at >= len(words):
        return Hidden()
    if any(word.splits for word in words[:at]):
        return seal_all(command)
    if name == "flock" and words[at].text in {"-c", "--command"}:
        return seal_all(command)
    inner = run(words[at:], tuple(sets))
    return Hidden(inner=(inner,), reach=at, transparent=wrapper.transparent)


def _set(word: Word) -> Assignment:
    name, _, value = word.text.partition("=")
    return Assignment(name, Word(value, splits=word.splits))


def env(command: Command) -> Hidden:
    """`env NAME=value program …`."""
    words = command.words
    at = after_options(
        words, Wrapper("i 0 v --ignore-environment --null --debug", "u --unset C --chdir")
    )
    if at is None or any(word.splits for word in words[:at]):
        return seal_all(command)
    if any(re.match(r"-[A-Za-z]*C|--chdir", word.text) for word in words[1:at]):
        return seal_all(command)
    sets: list[Assignment] = []
    while at < len(words) and (words[at].text == "-" or "=" in words[at].text):
        if words[at].splits or not _NAME.match(words[at].text):
            return seal_all(command)
        sets.append(_set(words[at]))
        at += 1
    if at >= len(words):
        return Hidden()
    return Hidden(inner=(run(words[at:], tuple(sets)),), reach=at, transparent=True)


_XARGS: Final = Wrapper(
    "0 r t p x --null --no-run-if-empty --verbose --exit --interactive",
    "n P L s d E a --max-args --max-procs --max-lines --max-chars --delimiter --arg-file --eof",
)


def xargs(command: Command) -> Hidden:
    """`xargs program …`: more words follow that nobody knows."""
    words = list(command.words)
    mark = ""
    for place, word in enumerate(words[1:-1], 1):
        if not word.text.startswith("-") or not word.literal:
            break
        if word.text == "-I":
            mark = words[place + 1].text
            del words[place : place + 2]
            break
    at = after_options(tuple(words), _XARGS)
    if at is None or any(word.splits for word in words[:at]) or HOLE in mark:
        return seal_all(command)
    ran = words[at:] or [literal("echo")]
    # Without -I a word may still be replaced under another name by an option that was not read.
    if mark:
        ran = [Word(each.text.replace(mark, HOLE), splits=each.splits) for each in ran]
    else:
        ran.append(Word(HOLE, splits=True))
    offset = len(command.words) - len(words)
    return Hidden(inner=(run(tuple(ran)),), reach=at + offset, transparent=True)
