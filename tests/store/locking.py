"""Takes a session's lock as another process would.

    python locking.py SESSION [signal]

Writes `taken` or the refusal to the standard output; holds the lock until its input ends.
"""

import os
import sys

from steno.errors import Busy
from steno.store.session_lock import SessionLock


def main() -> None:
    """Take the lock, say so, hold it."""
    try:
        lock = SessionLock.acquire(sys.argv[1])
    except Busy as error:
        sys.stdout.write(f"{error} | {error.hint}\n")
        sys.exit(3)
    sys.stdout.write(f"taken {os.getpid()}\n")
    sys.stdout.flush()
    sys.stdin.read()
    lock.release()


if __name__ == "__main__":
    main()
