"""Files that change while somebody looks: which ones did, and what was added to them."""

from steno.store.watch.watch import Changes, Watch

__all__ = ["Changes", "Watch"]
