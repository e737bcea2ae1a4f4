"""Bytecode of compiled templates, cached on disk because compiling dominates start-up time."""

import os
from hashlib import blake2b
from typing import Final

from jinja2 import BytecodeCache, __version__
from jinja2.bccache import Bucket

from steno.store.atomic import read_cache, write_cache

_FOLDER: Final = "templates"
_FINGERPRINT_SIZE: Final = 16
"""Length of the fingerprint in bytes. Templates are recompiled if their entry is damaged or from another release."""


class TemplateCache(BytecodeCache):
    """Caches compiled templates until the template, the environment module or the compiler changes."""

    def __init__(self, source_file: str) -> None:
        status = os.stat(source_file)
        self._compiler_key = f"{__version__} {status.st_size} {status.st_mtime_ns}".encode()

    def load_bytecode(self, bucket: Bucket) -> None:
        """Load a compiled template."""
        cached = read_cache(f"{_FOLDER}/2-{bucket.key}")
        if cached is not None and cached[:_FINGERPRINT_SIZE] == self._fingerprint(cached[_FINGERPRINT_SIZE:]):
            bucket.bytecode_from_string(cached[_FINGERPRINT_SIZE:])

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Store a compiled template."""
        code = bucket.bytecode_to_string()
        write_cache(f"{_FOLDER}/2-{bucket.key}", self._fingerprint(code) + code)

    def _fingerprint(self, code: bytes) -> bytes:
        return blake2b(self._compiler_key + code, digest_size=_FINGERPRINT_SIZE).digest()
