"""Writes the tables of recorded answers anew."""

from tests.format.answers import record

if __name__ == "__main__":
    record()
