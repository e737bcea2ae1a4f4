"""An answer in pages: none longer than any client takes, each saying how to get the next."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Final

from steno.errors import BadRequest
from steno.history.quoted import NOTICE

__all__ = ["MOST", "paged"]

MOST: Final = 20_000
"""How many letters a page has at most, about five thousand tokens."""
_ROOM: Final = 400
_FAR: Final = 10_000
_ITEM: Final = "- "


def paged(blocks: Iterable[str], page: int = 1) -> str:
    """Return one page of an answer; no block is cut in two.

    Raises:
        BadRequest: there is no such page.
    """
    pages: list[list[str]] = [[]]
    size = 0
    for block in blocks:
        if size + len(block) > MOST - _ROOM - len(NOTICE) and pages[-1]:
            if len(pages) >= page + 1 or len(pages) > _FAR:
                # There is more: how much nobody asked.
                return _page(pages[page - 1], page, more=True)
            pages.append([])
            size = 0
        pages[-1].append(block)
        size += len(block) + 2
    if page > len(pages):
        raise BadRequest(f"there is no page {page}", hint=f"the last is {len(pages)}")
    return _page(pages[page - 1], page, more=page < len(pages))


def _page(blocks: list[str], page: int, *, more: bool) -> str:
    end = f"Page {page}. There is more: ask the same again with `page` = {page + 1}."
    last = f"Page {page}, the last." if page > 1 else ""
    return _joined([part for part in (NOTICE, *blocks, end if more else last) if part])


def _joined(blocks: list[str]) -> str:
    """Put blocks together, the items of a list without a line between them."""
    parts = blocks[:1]
    for before, block in pairwise(blocks):
        items = before.startswith(_ITEM) and block.startswith(_ITEM)
        parts += ("\n" if items else "\n\n", block)
    return "".join(parts)
