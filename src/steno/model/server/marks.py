"""The names a server gives out, and the signatures under thinking; all of it comes from a seed."""

import hashlib
import hmac
from base64 import b64decode, b64encode
from binascii import Error
from typing import Final, Literal

__all__ = ["Ids", "Signer", "Verdict"]

_LETTERS: Final = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_LENGTH: Final = 22
_NONCE: Final = 12
_SEAL: Final = 12
Verdict = Literal["genuine", "modified", "foreign"]


class Ids:
    """Names in the API's form, the same ones for the same seed and order."""

    def __init__(self, seed: str = "") -> None:
        self._seed = seed
        self._counts: dict[str, int] = {}

    def message(self) -> str:
        """Return the next name of a message."""
        return f"msg_01{self._next('message')}"

    def call(self) -> str:
        """Return the next name of a tool call."""
        return f"toolu_01{self._next('call')}"

    def server_call(self) -> str:
        """Return the next name of a call that the server itself carries out."""
        return f"srvtoolu_01{self._next('server call')}"

    def request(self) -> str:
        """Return the next name of a request."""
        return f"req_011C{self._next('request')}"

    def nonce(self) -> bytes:
        """Return the next bytes that make a signature different from every other."""
        return self._digest("nonce")[:_NONCE]

    def _next(self, kind: str) -> str:
        number = int.from_bytes(self._digest(kind), "big")
        letters: list[str] = []
        for _ in range(_LENGTH):
            number, rest = divmod(number, len(_LETTERS))
            letters.append(_LETTERS[rest])
        return "".join(letters)

    def _digest(self, kind: str) -> bytes:
        count = self._counts[kind] = self._counts.get(kind, 0) + 1
        return hashlib.sha256(f"{self._seed}:{kind}:{count}".encode()).digest()


class Signer:
    """Signs thinking, and knows its own signatures again without keeping any."""

    def __init__(self, seed: str = "") -> None:
        self._key = hashlib.sha256(f"{seed}:signature".encode()).digest()

    def sign(self, thinking: str, nonce: bytes) -> str:
        """Return the signature of some thinking."""
        return b64encode(nonce + self._seal(nonce) + self._mac(nonce, thinking)).decode("ascii")

    def verdict(self, thinking: str, signature: str) -> Verdict:
        """Say whether a signature is ours, and whether it is that of this thinking."""
        try:
            given = b64decode(signature, validate=True)
        except (Error, ValueError):
            return "foreign"
        nonce, seal, mac = given[:_NONCE], given[_NONCE:][:_SEAL], given[_NONCE + _SEAL :]
        if not hmac.compare_digest(seal, self._seal(nonce)):
            return "foreign"
        same = hmac.compare_digest(mac, self._mac(nonce, thinking))
        return "genuine" if same else "modified"

    def _seal(self, nonce: bytes) -> bytes:
        return hmac.digest(self._key, b"nonce" + nonce, "sha256")[:_SEAL]

    def _mac(self, nonce: bytes, thinking: str) -> bytes:
        return hmac.digest(self._key, nonce + thinking.encode("utf-8", "surrogatepass"), "sha256")
