"""Whether commands run in a sandbox: what the settings say under `sandbox`, and what is there.

{"sandbox": {"enabled": true}}

It is for commands of Bash. Hooks and servers are what the user has set up, and are not confined.
"""

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from steno.errors import BadRequest
from steno.format.values import as_object
from steno.tools.base import Around

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Confining"]

_HINT: Final = (
    'install bubblewrap, set "enabled" to false, or "failIfUnavailable" to false to go on without'
)


class Confining:
    """How the commands of a session are confined; not at all when nobody asked for it."""

    def __init__(self, said: object, folders: tuple[str, ...]) -> None:
        """Take what the settings say, and the working folders, which may be written in.

        Raises:
            BadRequest: it is asked for, and nothing here can do it.
        """
        asked: dict[str, Any] = as_object(said) or {}
        self.words = ""
        """What is held back and what not; nothing where it was not asked for."""
        self._wrap: Callable[[Around, list[str]], list[str]] | None = None
        if asked.get("enabled") is not True:
            return
        from steno.guard.sandbox import Policy, find_sandbox, wrap

        found = find_sandbox()
        self.words = found.words
        if found.kind is None:
            if asked.get("failIfUnavailable") is not False:
                raise BadRequest(found.words, hint=_HINT)
            return

        def confined(around: Around, argv: list[str]) -> list[str]:
            project, *more = folders
            policy = Policy(project=project, writable=tuple(more), cwd=around.cwd)
            made = wrap(argv, policy, found)
            if made is None:
                raise BadRequest(found.words)
            return made

        self._wrap = confined

    def apply(self, around: Around) -> None:
        """Have the commands of a conversation run confined, wherever it is by then."""
        confined = self._wrap
        if confined is not None:
            around.kept["wrap"] = partial(confined, around)
