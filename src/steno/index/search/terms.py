"""A word of a query → how it may stand in a text.

The index holds words cut at whatever is no letter or digit, in lower case. So `src/auth/login.py`
is a phrase of four, and so is what is typed. A form says what each word of the phrase may be:
itself, or with anything before, behind or between. The same form is asked of the index and is
looked for in the text, so an excerpt shows just what was found.
"""

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from steno.index.search.language import Word
from steno.index.texts import TEXT, analyzer

if TYPE_CHECKING:
    import tantivy

__all__ = [
    "Form",
    "Span",
    "Token",
    "cutter",
    "forms_of",
    "insides",
    "is_slow",
    "query_of",
    "shortest",
    "spans_in",
]

Token: TypeAlias = tuple[str, int, int, int]
"""A word in lower case, which of the words it is, where it begins and where it ends."""
Span: TypeAlias = tuple[int, int]
Piece: TypeAlias = tuple[str, ...]
"""What a word is made of, with anything between: `("get", "")` is what begins with `get`."""

_MOST: Final = 200
"""So many matches in one text are looked for."""
_LONGEST_OPEN: Final = 400
"""A longer word, in bytes, is more than the automaton of an open one can hold."""
_AROUND: Final = 3
"""What a word is made of that has letters inside: anything, the letters, anything."""
_STARS: Final = re.compile(r"\*+")
_CAMEL: Final = re.compile(r"[a-z0-9][A-Z]|[A-Z][A-Z][a-z]")
_HEX: Final = re.compile(r"(?=[^a-f]*[a-f])(?=[^0-9]*[0-9])[0-9a-f]{6,}(?:-[0-9a-f]+)*", re.ASCII)
_VERSION: Final = re.compile(r"[0-9]+(?:\.[0-9]+)+", re.ASCII)
# Scripts that put no space between words, or hang endings on them: Thai to Lao, Burmese, Hangul,
# Khmer, and whatever is Chinese or Japanese. A pattern of these takes long to compile.
_RUNS: Final = (
    *((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1100, 0x11FF), (0x1780, 0x17FF), (0x2E80, 0x2FDF)),
    *((0x3005, 0x318F), (0x31A0, 0x31BF), (0x31F0, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF)),
    *((0xAC00, 0xD7FF), (0xF900, 0xFAFF), (0xFF66, 0xFFDC), (0x1B000, 0x1B16F), (0x20000, 0x3FFFF)),
)


class Form(msgspec.Struct, frozen=True):
    """One way in which a word may stand in a text."""

    pieces: tuple[tuple[int, Piece], ...]
    """What stands where, counted in words."""


def cutter() -> Callable[[str], list[Token]]:
    """Return what cuts a text just as the index does, and says where."""
    cut = analyzer().pre_tokenize

    def tokens(text: str) -> list[Token]:
        return [
            (token.text, token.position, token.char_offset_from, token.char_offset_to)
            for token in cut(text).tokens
        ]

    return tokens


def forms_of(
    word: Word, cut: Callable[[str], list[Token]], *, wide: bool = False
) -> tuple[Form, ...]:
    """Return how a word may stand in a text; nothing for what the index cannot know.

    With `wide` it may also stand inside longer words. An accent may be part of its letter, or
    stand behind it, as in the names of files on some systems.
    """
    forms = _forms_of(word, cut, wide=wide)
    if not word.text.isascii():
        from unicodedata import normalize

        for way in ("NFC", "NFD"):
            text = normalize(way, word.text)
            others = _forms_of(Word(text, word.quoted), cut, wide=wide)
            forms += tuple(form for form in others if not _lost_accents(form))
    return tuple(dict.fromkeys(forms))


def _lost_accents(form: Form) -> bool:
    """Whether nothing is left of the accents, so that it would find words that have none."""
    return len(form.pieces) == 1 and all(part.isascii() for part in form.pieces[0][1])


def _forms_of(word: Word, cut: Callable[[str], list[Token]], *, wide: bool) -> tuple[Form, ...]:
    pieces, starred = _pieces(word, cut)
    if not pieces:
        return ()
    form = Form(tuple(pieces))
    forms = [_open_runs(form)]
    if starred:
        return tuple(forms)
    if not word.quoted:
        if _HEX.fullmatch(word.text.lower()):
            forms = [_opened(form, left=False)]
        if _VERSION.fullmatch(word.text):
            forms.append(_with_v(form))
        if _CAMEL.search(word.text) or wide:
            forms.append(_opened(form, left=True))
    return tuple(forms)


def _pieces(word: Word, cut: Callable[[str], list[Token]]) -> tuple[list[tuple[int, Piece]], bool]:
    """Return the words of a word and their places, and whether stars made any of them open."""
    segments = _STARS.sub("*", word.text).split("*")
    pieces: list[tuple[int, Piece]] = []
    starred = touching = False
    base = 0
    for number, segment in enumerate(segments):
        tokens = cut(segment)
        touched = bool(tokens) and tokens[0][2] == 0
        own: list[tuple[int, Piece]] = [(base + at, (text,)) for text, at, _, _ in tokens]
        if number:
            if touching and touched and not word.quoted:
                at, piece = pieces.pop()
                own = [(each - 1, parts) for each, parts in own]
                own[0] = (at, (*piece, *own[0][1]))
                starred = True
            elif touching and not touched:
                at, piece = pieces.pop()
                pieces.append((at, (*piece, "")))
                starred = True
            elif touched and not touching:
                own[0] = (own[0][0], ("", *own[0][1]))
                starred = True
            elif not (touching or touched or word.quoted) and pieces and own:
                # A star of its own, as in `src/*/login.py`: any one word.
                own = [(at + 1, piece) for at, piece in own]
        pieces += own
        touching = bool(tokens) and tokens[-1][3] == len(segment)
        base = pieces[-1][0] + 1 if pieces else 0
    return pieces, starred


def _opened(form: Form, *, left: bool) -> Form:
    """Return a form whose ends may be parts of longer words."""
    pieces = list(form.pieces)
    at, piece = pieces[-1]
    if _may_open(piece):
        pieces[-1] = (at, (*piece, ""))
    at, piece = pieces[0]
    if left and _may_open(piece):
        pieces[0] = (at, ("", *piece))
    return Form(tuple(pieces))


def _with_v(form: Form) -> Form:
    """Return a version as it is also written: `v2.1.42`."""
    (at, piece), *rest = form.pieces
    return Form(((at, (f"v{piece[0]}",)), *rest))


def _may_open(piece: Piece) -> bool:
    size = sum(len(part.encode()) for part in piece)
    return 1 < size <= _LONGEST_OPEN


def _open_runs(form: Form) -> Form:
    """Let text of scripts without spaces stand anywhere in a run of letters."""
    pieces = list(form.pieces)
    if _has_run(pieces[-1][1][-1]) and _may_open(pieces[-1][1]):
        pieces[-1] = (pieces[-1][0], (*pieces[-1][1], ""))
    if _has_run(pieces[0][1][0]) and _may_open(pieces[0][1]):
        pieces[0] = (pieces[0][0], ("", *pieces[0][1]))
    return Form(tuple(pieces))


def _has_run(text: str) -> bool:
    if text.isascii():
        return False
    return any(first <= ord(letter) <= last for letter in text for first, last in _RUNS)


def shortest(forms: Sequence[Form]) -> int:
    """Return how many letters the shortest of some forms has."""
    return min(sum(len(part) for _, piece in form.pieces for part in piece) for form in forms)


def insides(forms: Sequence[Form]) -> set[str]:
    """Return the letters that are looked for anywhere inside of single words."""
    pieces = [form.pieces[0][1] for form in forms if len(form.pieces) == 1]
    return {piece[1] for piece in pieces if len(piece) == _AROUND and not (piece[0] or piece[2])}


def is_slow(form: Form) -> bool:
    """Whether all words there are have to be looked at, since nothing is said of how it begins."""
    return any(not piece[0] for _, piece in form.pieces)


def query_of(form: Form, schema: "tantivy.Schema") -> "tantivy.Query":
    """Return the question to the index."""
    from tantivy import Query

    first = form.pieces[0][0]
    if len(form.pieces) == 1:
        piece = form.pieces[0][1]
        if len(piece) == 1:
            return Query.term_query(schema, TEXT, piece[0])
        return Query.regex_query(schema, TEXT, _pattern(piece))
    if all(len(piece) == 1 for _, piece in form.pieces):
        return Query.phrase_query(schema, TEXT, [(at - first, p[0]) for at, p in form.pieces])
    words = [(at - first, _pattern(piece)) for at, piece in form.pieces]
    return Query.regex_phrase_query(schema, TEXT, list(words))


def _pattern(piece: Piece) -> str:
    return ".*".join(re.escape(part) for part in piece)


def spans_in(forms: Sequence[Form], tokens: Sequence[Token]) -> list[Span]:
    """Return where any of the forms stands in a text that was cut, in order."""
    several = any(len(form.pieces) > 1 for form in forms)
    places = {token[1]: token for token in tokens} if several else {}
    found: set[Span] = set()
    for form in forms:
        first, piece = form.pieces[0]
        rest = [(at - first, piece) for at, piece in form.pieces[1:]]
        # Nearly all words are whole, and nearly all of a text is something else.
        whole = len(piece) == 1
        for token in [each for each in tokens if each[0] == piece[0]] if whole else tokens:
            span = _starts_at(token, piece, rest, places)
            if span is not None:
                found.add(span)
                if len(found) >= _MOST:
                    break
    return sorted(found)


def _starts_at(
    token: Token, piece: Piece, rest: list[tuple[int, Piece]], places: dict[int, Token]
) -> Span | None:
    span = _part(token, piece)
    if span is None:
        return None
    start, end = span
    for ahead, other in rest:
        following = places.get(token[1] + ahead)
        part = _part(following, other) if following else None
        if part is None:
            return None
        end = part[1]
    return start, end


def _part(token: Token, piece: Piece) -> Span | None:
    """Return which part of a word fits; None if it does not."""
    text, _, start, end = token
    if len(piece) == 1:
        return (start, end) if text == piece[0] else None
    found = _inside(text, piece)
    if found is None:
        return None
    if len(text) != end - start:
        return start, end  # it changed its length when it was made lower case
    return start + found[0], start + found[1]


def _inside(text: str, piece: Piece) -> Span | None:
    """Return from where to where the parts stand in a word, one behind the other.

    Each is taken where it comes first: if the rest fits at all, it fits behind that. So the time
    it takes grows with the word alone, which a pattern could not promise.
    """
    parts = [part for part in piece if part]
    last = len(parts) - 1
    start = end = 0
    for number, part in enumerate(parts):
        if number == 0 and piece[0]:
            at = 0 if text.startswith(part) else -1
        elif number == last and piece[-1]:
            at = len(text) - len(part) if text.endswith(part) else -1
        else:
            at = text.find(part, end)
        if at < end:
            return None
        start = start if number else at
        end = at + len(part)
    return start, end
