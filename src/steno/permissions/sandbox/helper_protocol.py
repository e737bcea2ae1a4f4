"""Requests to the sandbox helper, as both ends know them. Imports only the standard library."""

import struct
from typing import Final

HEADER: Final = struct.Struct("=QQ")
"""The number of a request, and the length of its body."""
MAX_REQUEST_BYTES: Final = 16 << 20
