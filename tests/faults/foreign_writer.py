"""Changes files as another program does that knows nothing of steno's lock.

    python foreign_writer.py

Reads lines `CHANGE PATH` from the standard input and answers each with `done`.
"""

import os
import sys
from pathlib import Path

LINE = b'{"type":"custom-title","customTitle":"from elsewhere","sessionId":"x"}\n'


def change(how: str, path: Path) -> None:
    """Do one thing to a file."""
    data = path.read_bytes() if path.exists() else b""
    if how == "append":
        with path.open("ab") as file:
            file.write(LINE)
    elif how == "append half":
        with path.open("ab") as file:
            file.write(LINE[:20])
    elif how == "truncate":
        os.truncate(path, data.rfind(b"\n", 0, len(data) - 1) + 1)
    elif how == "truncate in a record":
        os.truncate(path, max(len(data) - 10, 0))
    elif how == "edit":
        path.write_bytes(data[:-30] + b"X" * 20 + data[-10:])
    elif how in ("replace", "replace with more"):
        other = path.with_name("other.tmp")
        other.write_bytes(data + (LINE if how == "replace with more" else b""))
        other.replace(path)
    elif how == "move":
        path.rename(path.with_name("moved.txt"))
    elif how == "delete":
        path.unlink()


def main() -> None:
    """Do what is asked for."""
    for line in sys.stdin:
        how, _, path = line.rstrip("\n").partition("\t")
        change(how, Path(path))
        sys.stdout.write("done\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
