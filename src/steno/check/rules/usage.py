"""Token usage that is a placeholder or inconsistent."""

from operator import itemgetter
from typing import Any, Final

from steno.check.evidence import RecordShape, RecordView
from steno.check.findings import Findings, Rule
from steno.format.catalogue import version_key
from steno.format.message import SYNTHETIC

_PLACEHOLDER: Final = Rule(
    "usage.placeholder",
    "info",
    "output tokens are a placeholder",
    "clients from 2.1.0 to 2.1.52 did not write the final figure; estimate the output from the text",
    "While a response streams in, its first figure for output tokens is a placeholder of a few "
    "tokens. Clients from 2.1.0 to 2.1.52 wrote that figure and never the final one, with a "
    "`stop_reason` of null. Sums over such sessions come out far too low; the other figures are "
    "right. It is said once per file.",
)
_CONFLICT: Final = Rule(
    "usage.conflict",
    "info",
    "the lines of one response have figures that do not grow",
    "count the highest figure of a response, not the last one or the sum",
    "A response is written as several lines with one `message.id`, each with the figures as they "
    "were known by then: the same, or growing. Figures that fall mean that lines were changed, "
    "reordered or mixed from two responses. No client minds; sums of tokens differ by reader.",
)
RULES: Final[tuple[Rule, ...]] = (_PLACEHOLDER, _CONFLICT)

_FIRST_VERSION: Final = (2, 1, 0)
_LAST_VERSION: Final = (2, 1, 52)
_FIGURES: Final = ("output_tokens", "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_all_figures: Final = itemgetter(*_FIGURES)
_INTEGER: Final = frozenset((int,))


def applies_to(kind: str, _shape: RecordShape | None) -> bool:
    """Say whether such a record is an answer."""
    return kind == "assistant"


class FileChecker:
    """Follows the figures of one file's responses."""

    def __init__(self) -> None:
        self._usage_by_response: dict[str, tuple[int, ...]] = {}
        self._conflicting: set[str] = set()
        self._versions: dict[str, bool] = {}
        self._is_reported = False

    def on_record(self, view: RecordView, findings: Findings) -> None:
        """Compare the figures of a line with those of the same response before it."""
        node = view.node
        if not node.has_message or node.model == SYNTHETIC:
            return
        message = view.message or {}
        usage: Any = message.get("usage")
        if usage.__class__ is not dict:
            return
        if not self._is_reported and message.get("stop_reason") is None:
            self._is_reported = self._is_placeholder(node.version)
            if self._is_reported:
                message_text = f"{_PLACEHOLDER.title} in sessions of {node.version}"
                findings.add(_PLACEHOLDER, view.location, message_text)
        if node.message_id is not None:
            self._compare(node.message_id, usage, view, findings)

    def _is_placeholder(self, version: str) -> bool:
        if version not in self._versions:
            self._versions[version] = _FIRST_VERSION <= version_key(version) <= _LAST_VERSION
        return self._versions[version]

    def _compare(self, name: str, usage: dict[str, Any], view: RecordView, findings: Findings) -> None:
        figures = _figures(usage)
        before = self._usage_by_response.get(name)
        if before == figures:
            return
        if not _INTEGER.issuperset(map(type, figures)):
            figures = tuple(map(_number, figures))
        self._usage_by_response[name] = figures
        if before is None or name in self._conflicting:
            return
        for key, old, new in zip(_FIGURES, before, figures, strict=True):
            if new < old:
                self._conflicting.add(name)
                findings.add(_CONFLICT, view.location, f"{key} of {name} fall from {old:,} to {new:,}")
                return


def _figures(usage: dict[str, Any]) -> tuple[Any, ...]:
    try:
        return _all_figures(usage)
    except KeyError:
        return tuple(map(usage.get, _FIGURES))


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0
