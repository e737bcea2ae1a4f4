"""Appends numbered records to a session file that others append to as well.

    python writing.py PATH NAME NUMBER

Prints the number of each record that was acknowledged.
"""

import sys

from steno.errors import StenoError
from steno.store.append import Appender


def main(path: str, name: str, number: int) -> None:
    """Append; where the file is refused because of the others, open it again."""
    file = Appender(path)
    done: list[int] = []
    for at in range(number):
        filling = "x" * (97 * at % 9000)
        line = f'{{"type":"user","uuid":"{name}-{at}","filling":"{filling}","end":true}}\n'.encode()
        for _ in range(1000):
            try:
                file.append(line)
            except StenoError:
                file.close()
                file = Appender(path)
            else:
                done.append(at)
                break
    file.close()
    sys.stdout.write(" ".join(map(str, done)))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
