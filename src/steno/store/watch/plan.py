"""Which folders to listen to, so that every transcript below some roots is heard of."""

import os

import msgspec

from steno.store.walk import folders_walked

__all__ = ["Plan", "plan_for"]


class Plan(msgspec.Struct, frozen=True):
    """Folders to listen to, and what they were when it was made."""

    deep: tuple[str, ...] = ()
    """With everything below them."""
    shallow: tuple[str, ...] = ()
    """Only what lies directly in them: a file that is followed, a root that is still to come."""
    identities: tuple[tuple[int, int], ...] = ()


def plan_for(roots: tuple[str, ...]) -> Plan:
    """Return the folders to listen to for some absolute roots, as the disk is now."""
    deep: dict[str, None] = {}
    shallow: dict[str, None] = {}
    for root in roots:
        if os.path.isdir(root):
            deep.update(dict.fromkeys(folders_walked(root)))
        else:
            shallow[_nearest(root)] = None
    folders = (*deep, *shallow)
    return Plan(tuple(deep), tuple(shallow), tuple(_identity(folder) for folder in folders))


def _nearest(path: str) -> str:
    """Return the nearest folder above a path that is there."""
    above = os.path.dirname(path)
    while not os.path.isdir(above) and above != os.path.dirname(above):
        above = os.path.dirname(above)
    return above


def _identity(folder: str) -> tuple[int, int]:
    try:
        status = os.stat(folder)
    except OSError:
        return 0, 0
    return status.st_dev, status.st_ino
