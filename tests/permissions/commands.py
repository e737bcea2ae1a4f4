"""Makes shell commands of which it is known what they run: the tree comes first, then its text."""

import shlex
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

_T = TypeVar("_T")

PROGRAMS: Final = ("alpha", "bravo", "carol", "delta", "ewing", "foxes", "gamma", "hotel")
ARGUMENTS: Final = ("one", "-v", "--all", "two words", "a=b", "x.py", "it's", "$(no)", "", "#no", "é")


class Dice:
    """Numbers that look random and are the same for the same seed, on every Python."""

    def __init__(self, seed: int) -> None:
        self.state = seed * 2 + 1

    def randrange(self, end: int) -> int:
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        return (self.state >> 33) % end

    def random(self) -> float:
        return self.randrange(1 << 20) / (1 << 20)

    def choice(self, items: Sequence[_T]) -> _T:
        return items[self.randrange(len(items))]


class Made:
    """A command's text, and the programs that it can run."""

    def __init__(self, text: str, runs: frozenset[str], *, one_line: bool = True) -> None:
        self.text = text
        self.runs = runs
        self.one_line = one_line


class Maker:
    """A seeded maker of commands; `plain` leaves out what no reader is asked to understand."""

    def __init__(self, seed: int, *, plain: bool = False) -> None:
        self.random = Dice(seed)
        self.plain = plain

    def make(self, depth: int = 3) -> Made:
        """Return a command."""
        if depth <= 0 or self.random.random() < 0.25:
            return self.simple(depth)
        return self.random.choice(_KINDS)(self, depth - 1)

    def pick(self, *texts: str) -> str:
        return self.random.choice(texts)

    def quoted(self, value: str) -> str:
        """Return a word in one of the many ways to write it."""
        ways = [shlex.quote(value), shlex.quote(value), '"' + _in_double(value) + '"']
        if value and not set(value) & set(" '$(#"):
            ways.append(value)
            ways.append("\\" + value)
            at = self.random.randrange(len(value) + 1)
            ways.append(f"{value[:at]}''{value[at:]}")
            ways.append(f"{shlex.quote(value[:at])}{shlex.quote(value[at:])}")
        if not self.plain and value and "'" not in value:
            ways += [f"$'{value}'", f"{value[:1]}\\\n{value[1:]}" if value.isalpha() else f'"{value}"']
            if value.isalpha():
                ways += [f"${{zz:-{value}}}", f'$(printf %s "{value}")', f"{{{value},}}"]
        made = self.random.choice(ways)
        # Only names are certain to be the same in all of these.
        return made if value.isalpha() or not made.startswith('"') else shlex.quote(value)

    def program(self) -> tuple[str, str]:
        name = self.random.choice(PROGRAMS)
        return name, self.quoted(name)

    def simple(self, depth: int) -> Made:
        name, text = self.program()
        runs = {name}
        parts = [text]
        for _ in range(self.random.randrange(3)):
            part, more = self.argument(depth)
            parts.append(part)
            runs |= more
        if self.random.random() < 0.15:
            parts.insert(0, self.pick("CI=1", "NO_COLOR=1", "LANG=C"))
        if self.random.random() < 0.2:
            parts.append(self.pick("2>&1", ">/dev/null", "2> /dev/null", "</dev/null", ">&2"))
        return Made(" ".join(parts), frozenset(runs))

    def argument(self, depth: int) -> tuple[str, frozenset[str]]:
        if depth > 0 and self.random.random() < 0.3:
            made = self.make(depth - 1)
            if not made.one_line:
                return self.quoted("x"), frozenset()
            ways = ["$({})", '"$({})"', 'a"b $({}) c"', "<({})", "$( {} )"]
            if not set(made.text) & set("`\\'\"#"):
                ways.append("`{}`")
            return self.random.choice(ways).replace("{}", made.text), made.runs
        return self.quoted(self.random.choice(ARGUMENTS)), frozenset()


def _in_double(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$").replace("`", "\\`")


def joined(maker: Maker, depth: int) -> Made:
    one, two = maker.make(depth), maker.make(depth)
    join = maker.pick(" && ", " || ", " | ", "; ", "\n", " & ", "&&", ";", " |& ")
    if not one.one_line:
        join = "\n"
    return Made(one.text + join + two.text, one.runs | two.runs, one_line=two.one_line)


def in_a_holder(maker: Maker, depth: int) -> Made:
    inner = maker.make(depth)
    form = maker.pick("( {}\n)", "{ {}\n}", "! {}", "if {}\nthen {}\nfi", "while {}\ndo {}\ndone")
    form = maker.pick(form, "for i in a b; do {}\ndone", "case x in x) {}\n;; esac", "f() { {}\n}; f")
    runs = inner.runs
    text = form.replace("{}", "\0", 1).replace("{}", "\1")
    if "\1" in text:
        other = maker.make(depth)
        runs |= other.runs
        text = text.replace("\1", other.text)
    runs |= {"f"} if form.startswith("f()") else frozenset[str]()
    return Made(text.replace("\0", inner.text), runs)


def _wrapped(maker: Maker, _depth: int) -> Made:
    inner = maker.simple(0)
    form, *also = maker.random.choice(
        (
            ("time {}",),
            ("nohup {}",),
            ("timeout 5 {}",),
            ("timeout -k 3 5s {}",),
            ("nice -n 3 {}",),
            ("env CI=1 {}",),
            ("command {}",),
            ("exec {}",),
            ("xargs -0 {}",),
            ("xargs -n 1 {}",),
            ("sudo -u x {}", "sudo"),
            ("busybox {}", "busybox"),
            ("find . -name x -exec {} \\;", "find"),
            ("find . -type f -execdir {} +", "find"),
        )
    )
    _, _, bare = inner.text.partition("=1 ")
    text = bare or inner.text
    if text.startswith("LANG=C "):
        text = text.removeprefix("LANG=C ")
    if form.startswith("find"):
        name = maker.random.choice(PROGRAMS)
        return Made(form.replace("{}", maker.quoted(name) + " {}", 1), frozenset({name, *also}))
    return Made(form.replace("{}", text), inner.runs | set(also))


def _scripted(maker: Maker, depth: int) -> Made:
    inner = maker.make(min(depth, 1))
    form, *also = maker.random.choice(
        (("bash -c {}", "bash"), ("sh -ec {}", "sh"), ("eval {}", "eval"), ("trap {} EXIT", "trap"))
    )
    return Made(form.replace("{}", shlex.quote(inner.text)), inner.runs | set(also))


def _flagged(maker: Maker, _depth: int) -> Made:
    name = maker.random.choice(PROGRAMS)
    form, also = maker.random.choice(
        (("rg --pre {} x", "rg"), ("rg --pre={} x", "rg"), ("rg x --hostname-bin {}", "rg"), ("fd x -x {}", "fd"))
    )
    return Made(form.replace("{}", maker.quoted(name)), frozenset({name, also}))


def in_a_document(maker: Maker, depth: int) -> Made:
    command = maker.simple(0)
    inner = maker.make(min(depth, 1))
    if not inner.one_line or "\n" in inner.text:
        return command
    if maker.random.random() < 0.5:
        text = f"{command.text} <<'EOF'\nsome $(nothing) `here`\nEOF\n{inner.text}"
        return Made(text, command.runs | inner.runs)
    text = f"{command.text} <<EOF\nsome $({inner.text}) text\nEOF"
    return Made(text, command.runs | inner.runs, one_line=False)


def remarked(maker: Maker, depth: int) -> Made:
    inner = maker.make(depth)
    if not inner.one_line:
        return inner
    return Made(inner.text + maker.pick(" # it's `x", " #", " # \\") + "\n", inner.runs)


_KINDS: Final[tuple[Callable[[Maker, int], Made], ...]] = (
    joined,
    joined,
    joined,
    in_a_holder,
    in_a_holder,
    _wrapped,
    _scripted,
    _flagged,
    in_a_document,
    remarked,
)
