"""What says who somebody is: the folder they live in, and their e-mail address."""

import re
from typing import Final

__all__ = ["HOME_NEEDLES", "MAIL_NEEDLE", "home_at", "mail_at"]

HOME_NEEDLES: Final = (
    b"/home/",
    b"/Users/",
    b"\\Users\\",
    b"-home-",
    b"-Users-",
    b"%2Fhome%2F",
    b"%2FUsers%2F",
)
MAIL_NEEDLE: Final = b"@"
_NAME: Final = rb"(?P<name>[A-Za-z0-9_][A-Za-z0-9._-]{0,63})"
_SLASHED: Final = re.compile(rb"/(?:home|Users)/(?!(?:Shared|linuxbrew|runner|user)\b)" + _NAME)
_PLAIN: Final = re.compile(rb"(?<![A-Za-z0-9_.-])" + _SLASHED.pattern)
_ESCAPE: Final = re.compile(rb"(?:\\[nrtbf]|\\u00[01][0-9a-f]|m|/mnt/[a-z])\Z")
"""What may stand right before one without being a part of it: the end of an escape."""
_HOMES: Final = (
    (b"\\", re.compile(rb"\\+Users\\+(?!(?:Public|Default)\b)" + _NAME)),
    (b"-", re.compile(rb"-(?:home|Users)-(?P<name>[A-Za-z0-9]{1,32})(?=-|\b)")),
    (b"%", re.compile(rb"%2F(?:home|Users)%2F(?P<name>[A-Za-z0-9_]{1,64})")),
)
_DRIVE: Final = re.compile(rb"(?:[A-Za-z]:|/mnt/[a-z]|/[a-z])\Z")
_DOMAIN: Final = re.compile(
    rb"@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,62}[A-Za-z0-9])?\.){1,6}[A-Za-z]{2,24}\b(?![(=])"
)
_NOBODY: Final = re.compile(
    rb"(?:(?:no-?reply|git|user|you|me|someone|name|email|foo|bar|test|hg|ssh|root|actions)@"
    rb"|[^@]{1,64}@(?:[a-z0-9-]+\.)*(?:example|test|invalid|localhost|local)(?:\.[a-z]{2,4})?\Z"
    rb"|[^@]{1,64}@users\.noreply\.)",
    re.IGNORECASE,
)
_CODE: Final = frozenset(
    (
        b"py",
        b"js",
        b"ts",
        b"tsx",
        b"jsx",
        b"rs",
        b"go",
        b"sh",
        b"md",
        b"json",
        b"yml",
        b"yaml",
        b"toml",
        b"txt",
        b"html",
        b"css",
        b"service",
        b"timer",
        b"so",
        b"png",
        b"svg",
    )
)
"""What ends a file's name rather than a domain's."""
_LONGEST: Final = 64
_LINK: Final = b"mailto:"


def home_at(data: bytes, place: int) -> tuple[int, int, bytes] | None:
    """Return where a home folder is named at a place, and what to write instead."""
    home = _PLAIN.match(data, place)
    if home is not None:
        # Nearly every home is written so.
        return place, home.end(), b"~"
    first = data[place : place + 1]
    if first == b"/":
        home = _SLASHED.match(data, place)
        if home is None or not _ESCAPE.search(data[max(0, place - 6) : place]):
            # A folder called home inside of another one, as in a web address.
            return None
        return place, home.end(), b"~"
    for mark, pattern in _HOMES:
        if first == mark:
            found = pattern.match(data, place)
            if found is None:
                return None
            if first == b"\\":
                begin, end = found.span()
                while data[begin - 1 : begin] == first:
                    begin -= 1
                drive = _DRIVE.search(data, max(0, begin - 6), begin)
                return drive.start() if drive else begin, end, b"~"
            begin, end = found.span("name")
            return begin, end, b"user"
    return None


def mail_at(data: bytes, place: int) -> tuple[int, int] | None:
    """Return where the e-mail address is whose `@` stands at a place."""
    domain = _DOMAIN.match(data, place)
    if domain is None or domain[0].rpartition(b".")[2].lower() in _CODE:
        return None
    back = data[max(0, place - _LONGEST) : place][::-1]
    local = _LOCAL_BACK.match(back)
    if local is None:
        return None
    begin = place - local.end()
    if data[begin - 1 : begin] == b"\\" and data[begin : begin + 1] in b"nrtbf":
        begin += 1
    linked = data[max(0, begin - len(_LINK)) : begin].lower() == _LINK
    if begin >= place or (data[begin - 1 : begin] in (b":", b"/", b"@") and not linked):
        # Behind a colon or a slash it is the one who logs in, in an address.
        return None
    return None if _NOBODY.match(data[begin : domain.end()]) else (begin, domain.end())


_LOCAL_BACK: Final = re.compile(rb"[A-Za-z0-9._%+-]*[A-Za-z0-9_%+-]")
