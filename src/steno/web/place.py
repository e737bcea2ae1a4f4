"""Where a session lies, apart from the house, which pages that lie in files have no need of."""

import msgspec

__all__ = ["Place"]


class Place(msgspec.Struct, frozen=True):
    """Where a session, or a sub-agent of one, lies, and what it is called in addresses."""

    file: int
    """Its number in the index."""
    id: str
    agent: str
    path: str
    gone: bool
    key: str
    """What an address calls the session."""
