"""The ledger importer: a rounding bug, a run without a terminal, a request that failed."""

from typing import Final

from tests.builders.blocks import thinking, tool
from tests.builders.builder import Session
from tests.builders.stories.kit import bash, begin, edit, grep, read

__all__ = ["stories"]

_CWD: Final = "/home/ada/ledger-import"
_PARSE: Final = f"{_CWD}/ledger/parse.py"

_PARSE_CODE: Final = '''"""Rows of a bank's CSV to entries of the ledger."""

from ledger.model import Entry


def amount(text: str) -> float:
    """Return an amount such as `1.234,56`."""
    return float(text.replace(".", "").replace(",", "."))


def entry(row: dict[str, str]) -> Entry:
    """Return one entry."""
    return Entry(day=row["Buchungstag"], text=row["Zweck"], amount=amount(row["Betrag"]))
'''

_RED: Final = """\
============================= test session starts ==============================
collected 23 items

tests/test_parse.py ........F..............                              [100%]

=================================== FAILURES ===================================
_____________________________ test_totals_balance ______________________________

>       assert ledger.total() == Decimal("0.00")
E       AssertionError: assert 0.010000000000218279 == Decimal('0.00')

tests/test_parse.py:61: AssertionError
========================= 1 failed, 22 passed in 0.84s ========================="""


def stories() -> list[Session]:
    """Return the sessions of this project, oldest first."""
    return [_rounding(), _headless(), _gave_up()]


def _rounding() -> Session:
    """Parallel calls in a line, sub-agents beside the session, a title."""
    made = begin("2.0.76", seed="ledger-1", cwd=_CWD, start="2026-11-03T10:15:00.000Z")
    made.have(_PARSE, _PARSE_CODE).warmup()
    made.user("After importing October the ledger is off by one cent. Find out why.")
    made.assistant(
        thinking("One cent over a month of rows smells like binary fractions."),
        "I'll read the parser, run the tests and look for floats at the same time.",
        read(_PARSE),
        bash("python -m pytest -q", "Run the tests"),
        grep(r"float\("),
    )
    made.result()
    made.wait(1).result(f"Exit code 1\n{_RED}", error=True)
    made.result('ledger/parse.py:8:    return float(text.replace(".", "").replace(",", "."))')
    made.assistant(
        "Amounts are binary floats; they cannot hold cents. I'll have the other formats checked "
        "before I change the type.",
        tool(
            "Task",
            description="Check other formats",
            prompt="List every bank format in formats/ and how it writes amounts.",
            subagent_type="Explore",
        ),
    ).agent(_formats)
    made.assistant(edit(_PARSE, "-> float:", "-> Decimal:")).result()
    made.assistant(edit(_PARSE, "    return float(text.replace", "    return Decimal(text.replace"))
    made.result()
    made.assistant(
        edit(
            _PARSE,
            "from ledger.model import Entry\n",
            "from decimal import Decimal\n\nfrom ledger.model import Entry\n",
        )
    ).result()
    made.assistant(bash("python -m pytest -q", "Run the tests again")).result("23 passed in 0.81s")
    made.assistant(
        "Amounts were `float`, and twelve of October's 214 rows lost a fraction of a cent each. "
        "They are `Decimal` now:\n\n```diff\n-def amount(text: str) -> float:\n"
        "+def amount(text: str) -> Decimal:\n```\n\nOctober balances to `0.00`."
    )
    return made.title("One cent off in October").exit()


def _formats(agent: Session) -> None:
    agent.assistant("I'll list the formats.", tool("Glob", pattern="formats/*.toml"))
    agent.result("formats/giro.toml\nformats/card.toml\nformats/broker.toml")
    agent.assistant(read(f"{_CWD}/formats/broker.toml"))
    agent.result('name = "broker"\ndecimal = "."\nthousands = ""\n')
    agent.assistant(
        "Three formats. `giro` and `card` write `1.234,56`; `broker` writes `1234.56` with up to four decimals."
    )


def _headless() -> Session:
    """Run without a terminal: short, no file history, one call refused."""
    made = begin("2.1.29", seed="ledger-2", cwd=_CWD, entrypoint="sdk-cli", start="2026-11-04T02:00:05.000Z")
    made.user("Import the file in inbox/ and list the rows that match no account.")
    made.assistant(bash("python -m ledger import inbox/2026-11-03.csv", "Import the file"))
    made.wait(2).result("imported 41 rows, 3 without an account")
    made.hook("PostToolUse", "callback", tool="Bash")
    made.assistant(bash("mv inbox/2026-11-03.csv archive/", "File the import away"))
    made.result("Moving files needs a permission that was not given.", error=True)
    return made.assistant(
        "41 rows imported. Three match no account:\n\n1. `GEMEINDEWERK 114,20`\n"
        "2. `FAEHRE KARTE 9,80`\n3. `RUECKLASTSCHRIFT -25,00`\n\n"
        "The file is still in `inbox/`: I was not allowed to move it."
    ).done()


def _gave_up() -> Session:
    """Ends with an error."""
    made = begin(seed="ledger-3", cwd=_CWD, start="2026-11-10T21:30:00.000Z")
    made.user("Match the three open rows with last year's accounts.")
    made.assistant("I'll look at last year's ledger.", bash("wc -l archive/2025/*.csv", "Count rows"))
    made.wait(1).result("  1184 archive/2025/giro.csv\n   402 archive/2025/card.csv\n  1586 total")
    made.assistant(bash("cat archive/2025/*.csv", "Read all of last year"))
    made.saved(
        "\n".join(f"2025-{i % 12 + 1:02d}-{i % 28 + 1:02d};BUCHUNG {i:04d};{i * 7 % 900},00" for i in range(1586))
    )
    return made.fatal(
        "API Error: 400 The request is longer than the model can read.", status=400, kind="invalid_request"
    ).done()
