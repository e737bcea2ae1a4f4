"""Writes the tables of recorded answers anew."""

from tests.check.cases import record

if __name__ == "__main__":
    record()
