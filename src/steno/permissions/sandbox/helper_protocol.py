"""The request header of the sandbox helper, used by both ends. Imports only the standard library."""

import struct
from typing import Final

HEADER: Final = struct.Struct("=QQ")
"""Number of the request, and length of its body."""
MAX_REQUEST_BYTES: Final = 16 << 20
