"""Templates as the program they become, kept in steno's folder.

To compile all of them takes longer than anything else at the start, and gives the same every time.
"""

import os
from hashlib import blake2b
from typing import Final

from jinja2 import BytecodeCache, __version__
from jinja2.bccache import Bucket

from steno.store.kept import keep, kept

__all__ = ["Compiled"]

_FOLDER: Final = "templates"
_PRINT: Final = 16
"""Bytes of a fingerprint: what was damaged, or made by another release, is compiled again."""


class Compiled(BytecodeCache):
    """Keeps compiled templates until their text, who reads them (a file), or the compiler changes."""

    def __init__(self, reader: str) -> None:
        status = os.stat(reader)
        self._made_by = f"{__version__} {status.st_size} {status.st_mtime_ns}".encode()

    def load_bytecode(self, bucket: Bucket) -> None:
        """Fill in a template that was compiled before."""
        found = kept(f"{_FOLDER}/2-{bucket.key}")
        if found is not None and found[:_PRINT] == self._print_of(found[_PRINT:]):
            bucket.bytecode_from_string(found[_PRINT:])

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep a template that has just been compiled."""
        code = bucket.bytecode_to_string()
        keep(f"{_FOLDER}/2-{bucket.key}", self._print_of(code) + code)

    def _print_of(self, code: bytes) -> bytes:
        return blake2b(self._made_by + code, digest_size=_PRINT).digest()
