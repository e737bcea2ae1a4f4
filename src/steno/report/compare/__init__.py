"""Two sessions side by side.

align    two rows of things: what both have, and what only one has
path     a session as the row of what was asked and done
suites   what test runners said
sides    a session as figures, files and commands
weigh    two sides → where they part, and how they differ
figures  the table of what differs
told     what the index knows of both, and the comparison in words
partners which sessions are likely to be compared with one
"""

from steno.report.compare.sides import Known, Side, side_of
from steno.report.compare.weigh import Comparison, compare

__all__ = ["Comparison", "Known", "Side", "compare", "side_of"]
