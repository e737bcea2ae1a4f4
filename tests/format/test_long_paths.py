"""The folder of a long path is the client's: a hash in signed bits, as JavaScript counts."""

import ctypes
from hashlib import sha256

from steno.format.paths import SLUG_LIMIT, slug_for_path


def hashed(path: str) -> int:
    """Return the hash of a path, worked out in the machine's own 32 bits."""
    units = path.encode("utf-16-le")
    total = ctypes.c_int32(0)
    for at in range(0, len(units), 2):
        unit = int.from_bytes(units[at : at + 2], "little")
        total = ctypes.c_int32(((total.value << 5) - total.value + unit) & 0xFFFF_FFFF)
    return total.value


def in_base_36(number: int) -> str:
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    return digits[number] if number < 36 else in_base_36(number // 36) + digits[number % 36]


def test_a_thousand_long_paths_have_the_folders_that_the_client_gives_them() -> None:
    negative = 0
    for number in range(1000):
        digits = sha256(b"%d" % number).hexdigest()
        path = f"/home/{digits}/ü.{digits[: number % 60]}/{digits * 3}"
        expected = hashed(path)
        negative += expected < 0
        assert slug_for_path(path).endswith(f"-{in_base_36(abs(expected))}"), path
        assert len(slug_for_path(path)) > SLUG_LIMIT
    # Half of all hashes are below zero: what is left out of their sign is another folder.
    assert negative > 300
