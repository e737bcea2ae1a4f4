"""Converts a query word to the forms in which it may occur in a text.

The index stores lower-case tokens, split at every character that is not a letter or digit. So `src/auth/login.py` is a
phrase of four tokens, in the text and in the query. A form describes each token of the phrase: the token itself, or
with any characters before, after or inside it. The same form is used to query the index and to find matches in a text,
so that an excerpt shows exactly what matched.
"""

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from steno.index.search.query_parser import WILDCARDS, Word
from steno.index.text_index import TEXT_FIELD, make_analyzer

if TYPE_CHECKING:
    import tantivy


Token: TypeAlias = tuple[str, int, int, int]
"""A token in lower case, its position, and its start and end in the text."""
Span: TypeAlias = tuple[int, int]
TokenParts: TypeAlias = tuple[str, ...]
"""Parts of a token with any characters between them: `("get", "")` matches tokens that start with `get`."""

_MAX_SPANS: Final = 200
"""Maximum number of matches searched in one text."""
_MAX_OPEN_SIZE: Final = 400
"""Maximum size in bytes of a token with open ends; the automaton of the engine cannot hold longer ones."""
_INFIX_PARTS: Final = 3
"""Number of parts of a token with open ends on both sides."""
_CAMEL_CASE: Final = re.compile(r"[a-z0-9][A-Z]|[A-Z][A-Z][a-z]")
_HEX_ID: Final = re.compile(r"(?=[^a-f]*[a-f])(?=[^0-9]*[0-9])[0-9a-f]{6,}(?:-[0-9a-f]+)*", re.ASCII)
_VERSION: Final = re.compile(r"[0-9]+(?:\.[0-9]+)+", re.ASCII)
# Scripts without spaces between words, or with attached endings: Thai to Lao, Burmese, Hangul, Khmer, Chinese and
# Japanese. A regular expression of these ranges would be slow to compile.
_UNSPACED_SCRIPTS: Final = (
    *((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1100, 0x11FF), (0x1780, 0x17FF), (0x2E80, 0x2FDF)),
    *((0x3005, 0x318F), (0x31A0, 0x31BF), (0x31F0, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF)),
    *((0xAC00, 0xD7FF), (0xF900, 0xFAFF), (0xFF66, 0xFFDC), (0x1B000, 0x1B16F), (0x20000, 0x3FFFF)),
)


class TermForm(msgspec.Struct, frozen=True):
    """One form in which a word may occur in a text."""

    tokens: tuple[tuple[int, TokenParts], ...]
    """The tokens with their relative positions."""


def make_tokenizer() -> Callable[[str], list[Token]]:
    """Return a function that splits a text into tokens with positions, as the index does."""
    pre_tokenize = make_analyzer().pre_tokenize

    def tokens(text: str) -> list[Token]:
        return [
            (token.text, token.position, token.char_offset_from, token.char_offset_to)
            for token in pre_tokenize(text).tokens
        ]

    return tokens


def term_forms(word: Word, tokenize: Callable[[str], list[Token]], *, widen: bool = False) -> tuple[TermForm, ...]:
    """Return the forms in which a word may occur; empty if the index cannot contain it.

    With `widen` it may also be part of longer words. Accents match both as composed and as combining characters, which
    some systems use in file names.
    """
    forms = _exact_forms(word, tokenize, widen=widen)
    if not word.text.isascii():
        from unicodedata import normalize

        for normal_form in ("NFC", "NFD"):
            text = normalize(normal_form, word.text)
            normalized_forms = _exact_forms(Word(text, word.quoted), tokenize, widen=widen)
            forms += tuple(form for form in normalized_forms if not _has_lost_accents(form))
    return tuple(dict.fromkeys(forms))


def _has_lost_accents(form: TermForm) -> bool:
    """Return whether normalization has removed all accents, so that the form would match words without them."""
    return len(form.tokens) == 1 and all(part.isascii() for part in form.tokens[0][1])


def _exact_forms(word: Word, tokenize: Callable[[str], list[Token]], *, widen: bool) -> tuple[TermForm, ...]:
    pieces, starred = _split_wildcards(word, tokenize)
    if not pieces:
        return ()
    form = TermForm(tuple(pieces))
    forms = [_open_unspaced(form)]
    if starred:
        return tuple(forms)
    if not word.quoted:
        if _HEX_ID.fullmatch(word.text.lower()):
            forms = [_open_ends(form, open_start=False)]
        if _VERSION.fullmatch(word.text):
            forms.append(_with_v_prefix(form))
        if _CAMEL_CASE.search(word.text) or widen:
            forms.append(_open_ends(form, open_start=True))
    return tuple(forms)


def _split_wildcards(word: Word, tokenize: Callable[[str], list[Token]]) -> tuple[list[tuple[int, TokenParts]], bool]:
    """Return the tokens of a word with their positions, and whether wildcards opened any of them."""
    segments = WILDCARDS.sub("*", word.text).split("*")
    pieces: list[tuple[int, TokenParts]] = []
    starred = ends_open = False
    base = 0
    for number, segment in enumerate(segments):
        tokens = tokenize(segment)
        starts_open = bool(tokens) and tokens[0][2] == 0
        segment_tokens: list[tuple[int, TokenParts]] = [(base + at, (text,)) for text, at, _, _ in tokens]
        if number:
            if ends_open and starts_open and not word.quoted:
                at, piece = pieces.pop()
                segment_tokens = [(position - 1, parts) for position, parts in segment_tokens]
                segment_tokens[0] = (at, (*piece, *segment_tokens[0][1]))
                starred = True
            elif ends_open and not starts_open:
                at, piece = pieces.pop()
                pieces.append((at, (*piece, "")))
                starred = True
            elif starts_open and not ends_open:
                segment_tokens[0] = (segment_tokens[0][0], ("", *segment_tokens[0][1]))
                starred = True
            elif not (ends_open or starts_open or word.quoted) and pieces and segment_tokens:
                # A separate wildcard, as in `src/*/login.py`, matches any one token.
                segment_tokens = [(at + 1, piece) for at, piece in segment_tokens]
        pieces += segment_tokens
        ends_open = bool(tokens) and tokens[-1][3] == len(segment)
        base = pieces[-1][0] + 1 if pieces else 0
    return pieces, starred


def _open_ends(form: TermForm, *, open_start: bool) -> TermForm:
    """Return a form whose first and last token may be part of longer words."""
    pieces = list(form.tokens)
    at, piece = pieces[-1]
    if _can_open(piece):
        pieces[-1] = (at, (*piece, ""))
    at, piece = pieces[0]
    if open_start and _can_open(piece):
        pieces[0] = (at, ("", *piece))
    return TermForm(tuple(pieces))


def _with_v_prefix(form: TermForm) -> TermForm:
    (at, piece), *rest = form.tokens
    return TermForm(((at, (f"v{piece[0]}",)), *rest))


def _can_open(piece: TokenParts) -> bool:
    size = sum(len(part.encode()) for part in piece)
    return 1 < size <= _MAX_OPEN_SIZE


def _open_unspaced(form: TermForm) -> TermForm:
    """Allow text in scripts without spaces to match anywhere in a run of characters."""
    pieces = list(form.tokens)
    if _has_unspaced_script(pieces[-1][1][-1]) and _can_open(pieces[-1][1]):
        pieces[-1] = (pieces[-1][0], (*pieces[-1][1], ""))
    if _has_unspaced_script(pieces[0][1][0]) and _can_open(pieces[0][1]):
        pieces[0] = (pieces[0][0], ("", *pieces[0][1]))
    return TermForm(tuple(pieces))


def _has_unspaced_script(text: str) -> bool:
    if text.isascii():
        return False
    return any(first <= ord(character) <= last for character in text for first, last in _UNSPACED_SCRIPTS)


def shortest_length(forms: Sequence[TermForm]) -> int:
    """Return the number of characters of the shortest form."""
    return min(sum(len(part) for _, piece in form.tokens for part in piece) for form in forms)


def infix_strings(forms: Sequence[TermForm]) -> set[str]:
    """Return the substrings that are searched inside single tokens."""
    pieces = [form.tokens[0][1] for form in forms if len(form.tokens) == 1]
    return {piece[1] for piece in pieces if len(piece) == _INFIX_PARTS and not (piece[0] or piece[2])}


def is_slow_form(form: TermForm) -> bool:
    """Return whether a form requires scanning all tokens because its beginning is open."""
    return any(not piece[0] for _, piece in form.tokens)


def form_query(form: TermForm, schema: "tantivy.Schema") -> "tantivy.Query":
    """Return the engine query for a form."""
    from tantivy import Query

    first = form.tokens[0][0]
    if len(form.tokens) == 1:
        piece = form.tokens[0][1]
        if len(piece) == 1:
            return Query.term_query(schema, TEXT_FIELD, piece[0])
        return Query.regex_query(schema, TEXT_FIELD, _token_pattern(piece))
    if all(len(piece) == 1 for _, piece in form.tokens):
        return Query.phrase_query(schema, TEXT_FIELD, [(at - first, p[0]) for at, p in form.tokens])
    token_patterns = [(at - first, _token_pattern(piece)) for at, piece in form.tokens]
    return Query.regex_phrase_query(schema, TEXT_FIELD, list(token_patterns))


def _token_pattern(piece: TokenParts) -> str:
    return ".*".join(re.escape(part) for part in piece)


def find_spans(forms: Sequence[TermForm], tokens: Sequence[Token]) -> list[Span]:
    """Return the sorted matches of any form in a tokenized text."""
    several = any(len(form.tokens) > 1 for form in forms)
    tokens_by_position = {token[1]: token for token in tokens} if several else {}
    spans: set[Span] = set()
    for form in forms:
        first, piece = form.tokens[0]
        rest = [(at - first, piece) for at, piece in form.tokens[1:]]
        # Most forms are exact, and most tokens of a text do not match.
        is_exact = len(piece) == 1
        for token in [candidate for candidate in tokens if candidate[0] == piece[0]] if is_exact else tokens:
            span = _match_at(token, piece, rest, tokens_by_position)
            if span is not None:
                spans.add(span)
                if len(spans) >= _MAX_SPANS:
                    break
    return sorted(spans)


def _match_at(
    token: Token, piece: TokenParts, rest: list[tuple[int, TokenParts]], tokens_by_position: dict[int, Token]
) -> Span | None:
    span = _match_token(token, piece)
    if span is None:
        return None
    start, end = span
    for distance, following_parts in rest:
        following = tokens_by_position.get(token[1] + distance)
        part = _match_token(following, following_parts) if following else None
        if part is None:
            return None
        end = part[1]
    return start, end


def _match_token(token: Token, piece: TokenParts) -> Span | None:
    text, _, start, end = token
    if len(piece) == 1:
        return (start, end) if text == piece[0] else None
    inner_span = _match_parts(text, piece)
    if inner_span is None:
        return None
    if len(text) != end - start:
        return start, end  # lower-casing changed its length
    return start + inner_span[0], start + inner_span[1]


def _match_parts(text: str, piece: TokenParts) -> Span | None:
    """Return the start and end of the parts in a token, in order.

    Each part is matched at its first occurrence, which is sufficient and takes linear time, unlike a regular
    expression.
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
