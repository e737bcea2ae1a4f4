"""What a confined command lacked, read from what it printed when it failed."""

import re
from typing import Final

__all__ = ["missing_access", "was_refused"]

_LAST: Final = 16_384
_REFUSED: Final = r"(?:permission denied|operation not permitted|read-only file system)"
_WRITE: Final = re.compile(
    r"read-only file system"
    r"|(?:cannot|can't|can not|could not|couldn't|unable to|failed to)[^\n]{0,40}?"
    r"(?:creat|writ|touch|remov|delet|mkdir|make dir|renam|mov|link|lock|sav|updat|append|unlink|chmod"
    r"|copy)[^\n]{0,300}?" + _REFUSED + r"|for writing[^\n]{0,300}?" + _REFUSED,
    re.IGNORECASE,
)
_ANY: Final = re.compile(_REFUSED, re.IGNORECASE)
_NETWORK: Final = re.compile(
    r"could ?n[o']t resolve|could not resolve host|temporary failure in name resolution"
    r"|name or service not known|network is unreachable|no address associated with hostname"
    r"|nodename nor servname|enotfound|eai_again|enetunreach|unknown host"
    r"|address family not supported|socket[^\n]{0,60}?" + _REFUSED,
    re.IGNORECASE,
)


def missing_access(printed: str) -> str:
    """Return what a confined command seems to need, in plain words; empty when nothing says so.

    >>> missing_access("touch: cannot touch 'x': Read-only file system")
    'to write files'
    >>> missing_access("curl: (6) Could not resolve host: example.org")
    'network access'
    >>> missing_access("cat: .env: Permission denied")
    ''
    """
    last = printed[-_LAST:]
    if _NETWORK.search(last):
        return "network access"
    return "to write files" if _WRITE.search(last) else ""


def was_refused(printed: str) -> bool:
    """Whether a command printed that something was refused to it.

    >>> was_refused("cat: .env: Permission denied")
    True
    >>> was_refused("Files a and b differ")
    False
    """
    last = printed[-_LAST:]
    return _ANY.search(last) is not None or bool(missing_access(last))
