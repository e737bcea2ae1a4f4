"""Every table of recorded answers of what is masked, and how its inputs are answered."""

from functools import partial
from typing import Final

from tests.sanitize.assignment_tables import NAME_COLUMNS, VALUE_COLUMNS, table
from tests.sanitize.recording import SAME, Answering, Answers, Text, each, visible, whole
from tests.sanitize.text_tables import HTML, TERMINAL, answered, code_points, hidden, name_kinds, shape, value_kinds

from steno.sanitize.secret_family import SecretFamily
from steno.sanitize.secret_masker import SECRET_FAMILIES, encodings_for, find_edits


def masked(notation: str) -> str:
    """Return what an export makes of a text: what is masked says as what, and under which cover."""
    text = Text(notation)
    made: list[str] = []
    end = 0
    for edit in find_edits(text.text.encode("utf-8", "surrogatepass")):
        cover = f" {edit.cover}" if edit.cover else ""
        new = edit.new.decode()
        said = f"{new[:-1]}{cover}>" if new == f"<masked:{edit.family}>" else f"<{new}{cover}>"
        made += [text.shown(end, edit.begin), said]
        end = edit.end
    size = len(text.text.encode("utf-8", "surrogatepass"))
    shown = "".join((*made, text.shown(end, size)))
    return shown if made else SAME


def _families() -> Answers:
    """Return what each family is found by; the ids are stable, receipts name them."""
    return [(family.id, _family(family)) for family in SECRET_FAMILIES]


def _family(family: SecretFamily) -> str:
    needles, stems = (b"  ".join(each).decode() for each in (family.needles, family.stems))
    public = "a prefix" if family.prefix else "no prefix"
    return visible(f"{family.says} | {needles} | {stems} | {public}")


def _covers() -> Answers:
    """Return what each cover is found by, for some stems."""
    covers = encodings_for((b"ghp_", b"sk-", b"uthor"))
    return [(cover.id, visible(b"  ".join(cover.needles).decode())) for cover in covers]


TABLES: Final[dict[str, Answering]] = {
    "families": whole(_families),
    "covers": whole(_covers),
    "tokens": each(masked),
    "shapes": each(masked),
    "commands": each(masked),
    "contexts": each(masked),
    "disguises": each(masked),
    "personal": each(masked),
    "overlaps": each(masked),
    "terminal": each(answered(TERMINAL)),
    "code_points": whole(code_points),
    "html": each(answered(HTML)),
    "hidden": each(hidden),
    "value_kinds": each(value_kinds),
    "value_shapes": each(shape),
    "name_kinds": each(name_kinds),
    "names": partial(table, NAME_COLUMNS, ends=True),
    "values": partial(table, VALUE_COLUMNS, ends=False),
    "assignments": each(masked),
    "credentials": each(masked),
}
WHOLE: Final = frozenset(("families", "covers", "code_points"))
"""Tables that are made as a whole."""
