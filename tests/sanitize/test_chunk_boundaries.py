"""Secrets across the places where a long text is cut into chunks are masked like any other."""

import pytest

from steno.sanitize.secret_masker import Masker

CHUNK = 1 << 20
"""How much of a text is looked through at once; other sizes cut elsewhere, and hold as well."""
SECRETS = (
    b"sk-ant-api03-" + b"aB3dE6gH9j" * 9 + b"-AA",
    b"ghp_" + b"aB3dE6gH9j" * 3 + b"aB3dE6",
    b"AKIA" + b"Q7RTPLXW2NDKJ5ZB",
)


@pytest.mark.parametrize("secret", SECRETS, ids=["anthropic", "github", "aws"])
@pytest.mark.parametrize("chunks", [1, 2])
def test_a_secret_across_a_boundary_is_masked_wherever_it_is_cut(secret: bytes, chunks: int) -> None:
    edge = chunks * CHUNK
    line = b"all is well here. " * 57
    for before in range(len(secret) + 2):
        start = edge - before
        filler = (line * (start // len(line) + 1))[: start - 1] + b" "
        masked = Masker().mask_bytes(filler + secret + b" and on\n")
        assert secret[-8:] not in masked, before
        assert masked.startswith(filler), before
        assert masked.endswith(b" and on\n"), before


def test_as_many_secrets_are_found_in_a_long_text_as_in_its_parts() -> None:
    secret = SECRETS[1]
    lines = [b"x" * (number % 97) + b" " + secret + b"\n" for number in range(30_000)]
    whole = Masker()
    assert secret not in whole.mask_bytes(b"".join(lines))
    assert whole.receipt.total == len(lines)


def test_a_mask_across_a_boundary_is_left_as_it_is() -> None:
    mask = b"<masked:github-token>"
    behind = b"', { a: 3 }); W7#q\\xZ^ k[5]='"
    for before in range(len(mask) + 2):
        text = b"x" * (CHUNK - before - 1) + b" " + mask + behind
        assert Masker().mask_bytes(text) == text, before
