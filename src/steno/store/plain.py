"""Any file that somebody names, as bytes: a plain one, and not a huge one."""

from steno.errors import BadRequest, Unreadable
from steno.store.found import Problem, peek

__all__ = ["read_plain"]


def read_plain(path: str, most: int) -> bytes:
    """Return what is in a file.

    Raises:
        BadRequest: there is more in it than `most` bytes.
        Unreadable: it is not there, is no plain file, or cannot be read.
    """
    problems: list[Problem] = []
    data = peek(path, most + 1, problems)
    if data is None:
        said = problems[0].message.lower() if problems else ""
        raise Unreadable(f"cannot read {path}: {said or 'no such file'}")
    if len(data) > most:
        raise BadRequest(f"{path} is larger than {most >> 20} MB")
    return data
