"""What the client calls the folder of a project: its path, with every odd character replaced."""

import re
from typing import Final

__all__ = [
    "SLUG_LIMIT",
    "dialect_slug",
    "guess_project",
    "project_of_folder",
    "slug",
    "slug_candidates",
    "slug_like",
]

SLUG_LIMIT: Final = 200
_LONGEST: Final = 255
_OTHER: Final = r"[^a-zA-Z0-9]"
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


def slug(path: str) -> str:
    """Return the name of the project folder for a working folder (symlinks already resolved).

    One `-` for every character that is no ASCII letter or digit; above 200 characters the first
    200 and a hash of the whole path. The client counts as JavaScript does, in UTF-16 code units:
    two for a character outside the basic plane. That last point is an inference; no real folder
    with such a name has been seen.

    >>> slug("/home/ada/dot.dir/ünï")
    '-home-ada-dot-dir--n-'
    """
    dashed = _dashed(path)
    if len(dashed) <= SLUG_LIMIT:
        return dashed
    return f"{dashed[:SLUG_LIMIT]}-{_base36(abs(_java_hash(path)))}"


def dialect_slug(path: str) -> str:
    """Return the project folder's name in the `conversations/` dialect: `/` becomes `_`.

    >>> dialect_slug("/home/ada/my-work")
    '_home_ada_my-work'
    """
    return path.replace("/", "_")


def slug_candidates(path: str) -> tuple[str, ...]:
    """Return every folder name that a client or a published rule would give `path`, likeliest first.

    Besides `slug`: unshortened (clients up to 2.1.42), only `/` replaced (the published rule),
    both without the leading `-` (one published checklist), and the `_` dialect.
    """
    return tuple(dict.fromkeys(name for name in _by_rule(path) if name))


def slug_like(name: str, path: str, other: str) -> str:
    """Return the folder name of another path by the rule that gave `path` the name it has.

    A rule that would make a longer name than folders can have gives way to the clients' own.

    >>> slug_like("_home_ada_a", "/home/ada/a", "/srv/b.c"), slug_like("x", "/home/ada/a", "/srv/b")
    ('_srv_b.c', '-srv-b')
    """
    for old, new in zip(_by_rule(path), _by_rule(other), strict=True):
        if old == name and len(new.encode("utf-8", "surrogateescape")) <= _LONGEST:
            return new
    return slug(other)


def _by_rule(path: str) -> tuple[str, ...]:
    dashed, published = _dashed(path), path.replace("/", "-")
    return (
        slug(path),
        dashed,
        published,
        dashed.removeprefix("-"),
        published.removeprefix("-"),
        dialect_slug(path),
    )


def guess_project(name: str) -> str:
    r"""Guess, for people to read, the working folder behind a project folder's name.

    The name has lost what stood for each `-`, so this is for files that do not say their `cwd`.

    >>> guess_project("-home-ada-work--claude-worktrees-wt9")
    '/home/ada/work/.claude/worktrees/wt9'
    >>> guess_project("C--Users-ada-work")
    'C:\\Users\\ada\\work'
    """
    kept, cut = name, ""
    if len(name) > SLUG_LIMIT and name[SLUG_LIMIT] == "-":
        kept, cut = name[:SLUG_LIMIT], "…"
    if re.match(r"[A-Za-z]--", kept):
        return kept[0] + ":\\" + kept[3:].replace("--", "\\.").replace("-", "\\") + cut
    if kept.startswith("_"):
        return kept.replace("_", "/") + cut
    if kept.startswith(("home-", "Users-")):
        kept = "-" + kept
    if not kept.startswith("-"):
        return name
    return kept.replace("--", "/.").replace("-", "/") + cut


def project_of_folder(name: str) -> str:
    """Return the working folder that a folder's name stands for; nothing for any other name.

    >>> project_of_folder("_home_ada_work"), project_of_folder("backup")
    ('/home/ada/work', '')
    """
    guessed = guess_project(name)
    return guessed if guessed != name else ""


def _dashed(path: str) -> str:
    if path.isascii():
        return re.sub(_OTHER, "-", path)
    return "".join("--" if c > "\uffff" else re.sub(_OTHER, "-", c) for c in path)


def _java_hash(text: str) -> int:
    """Hash as Java's `String.hashCode`: over UTF-16 code units, in 32 signed bits."""
    units = text.encode("utf-16-le", "surrogatepass")
    total = 0
    for low, high in zip(units[::2], units[1::2], strict=True):
        total = (total * 31 + (high << 8 | low)) & 0xFFFF_FFFF
    return total - (1 << 32) if total >> 31 else total


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits or "0"
