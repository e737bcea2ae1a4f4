"""Compares two sessions.

session_side           one of the two compared sessions
comparison             the differences, as data, table and text
comparison_candidates  suggests sessions to compare
"""

from steno.report.compare.comparison import Comparison, compare
from steno.report.compare.session_side import IndexedFacts, SessionSide, build_side

__all__ = ["Comparison", "IndexedFacts", "SessionSide", "build_side", "compare"]
