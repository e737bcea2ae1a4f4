"""Every exception steno raises on purpose.

Bad *data* is never an exception: it becomes a damage note or a finding. Exceptions are for a
caller's mistake and for files that cannot be read.

    StenoError
    ├── NotFound           (LookupError)   no session, record or turn of that name
    ├── Ambiguous          (LookupError)   a name that fits several sessions
    ├── BadRequest         (ValueError)    an argument that makes no sense
    │   └── InDialect                      a session that cannot be added to as it is
    ├── Unreadable         (OSError)       a path that is no readable session file
    ├── Unwritable         (OSError)       a file that cannot be written: full disk, no right to
    └── Busy               (OSError)       a session file that somebody else is writing to
"""


class StenoError(Exception):
    """The root. `str(error)` is one clear line; `hint` says what to do next."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class NotFound(StenoError, LookupError):
    """Nothing goes by that name."""


class Ambiguous(StenoError, LookupError):
    """Several sessions go by that name; `candidates` lists them."""

    def __init__(self, message: str, *, candidates: tuple[str, ...] = (), hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.candidates = candidates


class BadRequest(StenoError, ValueError):
    """The caller asked for something that makes no sense."""


class InDialect(BadRequest):
    """The session has records that no client reads, so that nothing can be added to it."""


class Unreadable(StenoError, OSError):
    """The path is not a session file that can be read."""


class Unwritable(StenoError, OSError):
    """The file cannot be written; what was there before is untouched."""


class Busy(StenoError, OSError):
    """The file is growing, or has changed since it was read; it was left as it is."""
