"""The commands that hide in the words of others: `sudo rm`, `find -exec`, `bash -c`, `rg --pre`.

Programs are looked up by the last part of their name. What is found is judged like any command;
where nobody can say what is run, the command is sealed, and only a rule that names the words in
question allows it.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

from steno.guard.switches import RUNNERS, Switches, dangerous
from steno.guard.words import HOLE, Command, Redirection, Word, harmless, literal, names
from steno.guard.wrappers import (
    WRAPPERS,
    Hidden,
    Wrapper,
    after_options,
    base_name,
    env,
    run,
    seal,
    seal_all,
    wrapped,
    xargs,
)

__all__ = ["Hidden", "base_name", "is_shell", "runs_code", "unfold"]


_SHELLS: Final = frozenset({"sh", "bash", "dash", "ash", "ksh", "mksh", "rbash"})
_OTHER_SHELLS: Final = frozenset({"zsh", "fish", "csh", "tcsh", "pwsh", "nu", "xonsh", "elvish"})
# Whatever they are given, they run it, or something that a file or a server says.
_SEALED: Final = names(
    "parallel entr at batch crontab su runuser pkexec script expect screen tmux unshare nsenter"
    " systemd-run gdb lldb strace ltrace perf valgrind rlwrap unbuffer socat nc ncat hash enable"
    " bind complete shopt set fc coproc dbus-run-session powershell pwsh"
    " zsh fish csh tcsh nu xonsh elvish osascript make-shell"
)

_SCRIPT_FOLLOWS: Final = re.compile(r"-[elnuvx]*c[elnuvx]*")
_SHELL_FLAGS: Final = re.compile(r"[-+][elnuvx]+")


def is_shell(program: str) -> bool:
    """Whether a program is a shell."""
    return base_name(program) in _SHELLS | _OTHER_SHELLS


def runs_code(program: str) -> bool:
    """Whether a program runs what it is given: no rule over all its words is ever offered."""
    name = re.sub(r"(?<=[a-z])[0-9.]+$", "", base_name(program))
    known = name in WRAPPERS or name in _SEALED or name in RUNNERS or name in _SPECIAL
    return known or name in {"source", "."} or is_shell(name)


def unfold(command: Command) -> Hidden:
    """Return what hides in a command."""
    words = command.words
    if not words or not words[0].literal:
        return Hidden()
    name = base_name(words[0].text)
    plain = re.sub(r"(?<=[a-z])[0-9.]+$", "", name)
    special = _SPECIAL.get(name) or _SPECIAL.get(plain)
    if special is not None:
        return special(command)
    if name in _SHELLS:
        return _shell(command)
    if name in WRAPPERS:
        return wrapped(command, WRAPPERS[name])
    if (name in _SEALED or plain in _SEALED) and len(words) > 1:
        return seal(len(words) - 1, f"{name} runs what it is given")
    if name in _SEALED and name in _OTHER_SHELLS:
        return seal(0, "it reads commands from elsewhere")
    switches = RUNNERS.get(name) or RUNNERS.get(plain)
    return _switched(command, switches) if switches is not None else Hidden()


def _shell(command: Command) -> Hidden:
    """`bash -c script`; a script file is judged as a word; anything else is read from elsewhere."""
    words = command.words
    elsewhere = seal(len(words) - 1, "it reads commands from elsewhere")
    if [word.text for word in words[1:]] in (["--version"], ["--help"]):
        return Hidden()
    for at, word in enumerate(words[1:], 1):
        if not word.literal:
            return elsewhere
        if _SCRIPT_FOLLOWS.fullmatch(word.text):
            script = words[at + 1] if at + 1 < len(words) else None
            if script is None or not script.literal:
                return seal_all(command)
            if script.text.startswith(("-", "+")):
                return seal_all(command)
            return Hidden(scripts=(script.text,), reach=at + 1)
        if not word.text.startswith(("-", "+")):
            # A bare name may be looked up in the path, or not be a script at all.
            return Hidden(reach=at) if "/" in word.text or "." in word.text else elsewhere
        if not _SHELL_FLAGS.fullmatch(word.text):
            return elsewhere
    return elsewhere


def _eval(command: Command) -> Hidden:
    if any(not word.literal for word in command.words):
        return seal_all(command)
    rest = [word.text for word in command.words[1:]]
    return Hidden(
        scripts=(" ".join(rest[1:] if rest[:1] == ["--"] else rest),), reach=len(command.words) - 1
    )


def _trap(command: Command) -> Hidden:
    words = command.words
    if len(words) == 1 or words[1].text in {"-l", "-p", "-", ""}:
        return Hidden()
    at = 2 if words[1].text == "--" else 1
    if at >= len(words) or not words[at].literal:
        return seal_all(command)
    return Hidden(scripts=(words[at].text,), reach=at, repeated=True)


def _alias(command: Command) -> Hidden:
    if any(not word.literal for word in command.words):
        return seal_all(command)
    scripts = tuple(w.text.partition("=")[2] for w in command.words[1:] if "=" in w.text)
    return Hidden(scripts=scripts, reach=len(command.words) - 1 if scripts else -1, repeated=True)


def _remote(command: Command) -> Hidden:
    """`ssh host words`: the far shell reads the words once more."""
    words = command.words
    at = after_options(
        words, Wrapper("4 6 A a C f G g K k M N n q s T t V v X x Y y", "p l i b c e m")
    )
    if at is None or any(word.splits for word in words):
        return seal_all(command)
    rest = words[at + 1 :]
    if not all(word.literal for word in rest):
        return seal_all(command)
    if not rest:
        return seal(len(words) - 1, "it opens a shell on another machine")
    return Hidden(scripts=(" ".join(word.text for word in rest),), reach=len(words) - 1)


def _watch(command: Command) -> Hidden:
    words = command.words
    at = after_options(words, Wrapper("b c d e g t", "n --interval"))
    if at is None or any(not word.literal for word in words):
        return seal_all(command)
    return Hidden(scripts=(" ".join(word.text for word in words[at:]),), reach=len(words) - 1)


_FIND_RUNS: Final = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_FIND_WRITES: Final = frozenset({"-fprint", "-fprint0", "-fls", "-fprintf"})


def _find(command: Command) -> Hidden:
    words = command.words
    inner: list[Command] = []
    writes: list[Redirection] = []
    reach = -1
    at = 1
    start = _find_start(words) + HOLE
    while at < len(words):
        word = words[at]
        if word.splits or word.text.startswith(HOLE):
            return seal_all(command)
        if word.text in _FIND_RUNS:
            # In the folder of the file, its path begins with `./`.
            begin = f"./{HOLE}" if word.text.endswith("dir") else start
            end = _find_end(words, at + 1)
            ran = tuple(Word(each.text.replace("{}", begin)) for each in words[at + 1 : end])
            if not ran:
                return seal_all(command)
            inner.append(run(ran))
            reach = at = end
        elif word.text == "-delete":
            inner.append(run((literal("rm"), Word(HOLE, splits=True))))
            reach = at
        elif word.text in _FIND_WRITES and at + 1 < len(words):
            writes.append(Redirection(writes=True, target=words[at + 1]))
            at += 1
        at += 1
    return Hidden(inner=tuple(inner), redirections=tuple(writes), reach=min(reach, len(words) - 1))


def _find_start(words: tuple[Word, ...]) -> str:
    """Return how the paths that find comes upon begin: as its only folder is written."""
    folders: list[str] = []
    for word in words[1:]:
        if word.text in {"-H", "-L", "-P"}:
            continue
        if word.text.startswith(("-", "(", "!")):
            break
        folders.append(word.text)
    if len(folders) > 1 or any(HOLE in each for each in folders):
        return ""
    return folders[0] if folders else "."


def _find_end(words: tuple[Word, ...], at: int) -> int:
    """Return where the command of an `-exec` ends; as late as it can."""
    for place in range(at, len(words)):
        if words[place].text == ";":
            return place
        if words[place].text == "+" and words[place - 1].text == "{}":
            return place
    return len(words)


def _fd(command: Command) -> Hidden:
    words = command.words
    for at, word in enumerate(words[1:], 1):
        if word.splits or word.text.startswith(HOLE):
            return seal_all(command)
        if re.fullmatch(r"-[a-zA-Z0-9]*[xX].*|--exec.*", word.text):
            if word.text not in {"-x", "-X", "--exec", "--exec-batch"} or at + 1 >= len(words):
                return seal_all(command)
            ran = (*(Word(re.sub(r"\{.*?\}", HOLE, w.text)) for w in words[at + 1 :]), Word(HOLE))
            return Hidden(inner=(run(ran),), reach=len(words) - 1)
    return Hidden()


def _printf(command: Command) -> Hidden:
    words = command.words
    if len(words) > 1 and (words[1].splits or words[1].text[:1] in {HOLE, "-"}):
        return seal_all(command)
    return Hidden()


def _test(command: Command) -> Hidden:
    for word in command.words[1:]:
        if word.splits or word.text[:1] == HOLE or word.text in {"-v", "-R"}:
            return seal_all(command)
    return Hidden()


def _declare(command: Command) -> Hidden:
    """`export NAME=value`, `read NAME`: a name may be a subscript that runs something."""
    for word in command.words[1:]:
        name = word.text.partition("=")[0]
        if not re.fullmatch(r"-[a-zA-Z]*|[A-Za-z_]\w*", name, re.ASCII):
            return seal_all(command)
        if not name.startswith("-") and not harmless(name):
            return seal(len(command.words) - 1, f"it sets {name}")
        if word.splits and "=" not in word.text:
            return seal_all(command)
        if re.fullmatch(r"-[a-zA-Z]*[nif][a-zA-Z]*", name) and command.program != "read":
            return seal_all(command)
    return Hidden()


def _switched(command: Command, switches: Switches) -> Hidden:
    found = dangerous(command.words, switches)
    return Hidden(
        inner=tuple(run(each) for each in found.runs),
        redirections=tuple(Redirection(writes=True, target=each) for each in found.writes),
        reach=found.at,
        sealed=found.why,
    )


_SPECIAL: Final[Mapping[str, Callable[[Command], Hidden]]] = {
    "env": env,
    "xargs": xargs,
    "eval": _eval,
    "trap": _trap,
    "alias": _alias,
    "ssh": _remote,
    "watch": _watch,
    "find": _find,
    "gfind": _find,
    "fd": _fd,
    "fdfind": _fd,
    "printf": _printf,
    "test": _test,
    "export": _declare,
    "declare": _declare,
    "typeset": _declare,
    "local": _declare,
    "readonly": _declare,
    "unset": _declare,
    "read": _declare,
    "getopts": _declare,
    "mapfile": seal_all,
    "readarray": seal_all,
    "let": seal_all,
    "wait": _declare,
}
