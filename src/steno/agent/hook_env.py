"""Variables that hooks leave for the commands of a session: in a file that is named to them.

A hook appends lines such as `export NODE_ENV=test`; what bash makes of them is what commands see.
"""

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import msgspec

from steno.agent.programs import run_program

__all__ = ["EnvFile"]

_READ: Final = '. "$0" > /dev/null 2>&1; env -0'
_SECONDS: Final = 10.0
# What every shell sets for itself.
_OF_BASH: Final = frozenset({"_", "SHLVL", "PWD", "OLDPWD"})
_PRIVATE: Final = 0o700


class EnvFile(msgspec.Struct):
    """The file, and what was found in it."""

    path: str
    found: dict[str, str] = {}

    def offer(self) -> None:
        """Make room for the file, which hooks make themselves."""
        with suppress(OSError):
            os.makedirs(os.path.dirname(self.path), mode=_PRIVATE, exist_ok=True)

    async def read(self, cwd: str, env: Mapping[str, str]) -> None:
        """Take what hooks have left."""
        bash = shutil.which("bash", path=env.get("PATH"))
        if bash is None or not self._is_there():
            return
        line = (bash, "-c", _READ, self.path)
        done = await run_program(line, b"", cwd=cwd, env=dict(env), seconds=_SECONDS)
        for pair in done.out.split("\0"):
            name, given, value = pair.partition("=")
            if given and name not in _OF_BASH and env.get(name) != value:
                self.found[name] = value

    def _is_there(self) -> bool:
        return os.path.isfile(self.path)

    def drop(self) -> None:
        """Take the file away."""
        with suppress(OSError):
            os.unlink(self.path)
