"""Who wrote each line of a file as it is now.

values  a line, where it comes from, a file's blame
weave   versions → which of them put each line of a text there
merge   what sessions wrote and what git knows → where each line comes from
asked   a file on disk, the index and the repository → its blame
"""

from steno.report.blame.asked import blame
from steno.report.blame.values import Blame, Blamed, Origin

__all__ = ["Blame", "Blamed", "Origin", "blame"]
