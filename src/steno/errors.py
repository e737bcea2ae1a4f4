"""The exceptions that steno raises on purpose.

Damaged *data* never raises: it becomes a damage note or a finding. Exceptions report a mistake of
the caller, or a file that cannot be read or written.

    StenoError
    ├── NotFound           (LookupError)   no session, record or turn matches
    ├── Ambiguous          (LookupError)   several sessions match
    ├── BadRequest         (ValueError)    invalid argument
    │   └── InDialect                      session in a dialect, cannot be appended to
    ├── Unreadable         (OSError)       not a readable session file
    ├── Unwritable         (OSError)       file cannot be written: disk full, permission denied
    └── Busy               (OSError)       session file in use by another process
"""


class StenoError(Exception):
    """Base class. `str(error)` is one line; `hint` is the next step, or empty."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class NotFound(StenoError, LookupError):
    """No session, record or turn matches."""


class Ambiguous(StenoError, LookupError):
    """Several sessions match; `candidates` lists them, `paths` their files."""

    def __init__(
        self, message: str, *, candidates: tuple[str, ...] = (), paths: tuple[str, ...] = (), hint: str = ""
    ) -> None:
        super().__init__(message, hint=hint)
        self.candidates = candidates
        self.paths = paths


class BadRequest(StenoError, ValueError):
    """Invalid argument."""


class InDialect(BadRequest):
    """The session has records that Claude Code cannot read, so nothing can be appended."""


class Unreadable(StenoError, OSError):
    """The path is not a readable session file."""


class Unwritable(StenoError, OSError):
    """The file cannot be written; an existing file is unchanged."""


class Busy(StenoError, OSError):
    """The file is being written, or changed since it was read; it was not modified."""
