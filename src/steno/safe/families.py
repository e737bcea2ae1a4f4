r"""Every family of secrets: keys, tokens and passwords, each with an id.

A family is found by its needles, fixed bytes that are looked for at the speed of memory. What else it
takes is examined only where a needle stands. Everything is bytes: of a line of JSON, where a line end
is `\n` and a quote `\"`, as well as of plain text.
"""

from typing import Final

from steno.safe.assignments import NAMED
from steno.safe.command_lines import COMMAND_LINES
from steno.safe.credentials import CREDENTIALS
from steno.safe.family import Family
from steno.safe.platform_tokens import PLATFORM_TOKENS
from steno.safe.service_tokens import SERVICE_TOKENS

__all__ = ["FAMILIES"]

FAMILIES: Final[tuple[Family, ...]] = (
    *PLATFORM_TOKENS,
    *SERVICE_TOKENS,
    *CREDENTIALS,
    *COMMAND_LINES,
    *NAMED,
)
"""Every family, the most certain first. The ids are stable: receipts name them."""
