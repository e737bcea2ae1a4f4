"""Tables of names and values: behind which names which values are masked."""

from typing import Final

from tests.sanitize.recording import Answers, Text

from steno.sanitize.secret_masker import find_edits

_CODES: Final = {
    "password": "p",
    "env-password": "e",
    "named-secret": "n",
    "aws-secret-key": "a",
    "command-password": "c",
}
"""The letter of a family in a table; of others the whole id."""

_STRONG: Final = "«20 alnum»"
NAME_COLUMNS: Final = (
    '{} = "hunter9x"',
    "{}=hunter9x",
    "{}: hunter9x",
    "{}=falcon",
    f"{{}}={_STRONG}",
    f'{{}}: "{_STRONG}"',
    "{}=«8 hex»-«4 hex»-«4 hex»-«4 hex»-«12 hex»",
    "{}=«32 hex»",
    "{}=«40 base64»",
    "{}='rather!9x'",
    "{} is hunter9x",
    f"--{{}} {_STRONG}",
)

VALUE_COLUMNS: Final = (
    'password = "{}"',
    "password = {}",
    "PASSWORD={}",
    "password: {}",
    "secret: '{}'",
    "secret={}",
    "SECRET={}",
    "stripe_key={}",
    'sessionid="{}"',
    'passphrase = "{}"',
    "the password is {}",
    "--password {}",
    "--password={}",
    "--secret {}",
    "--stripe-key {}",
    "token {} was",
    "login ada password {}",
    "set password '{}'",
    'f("password", "{}")',
    'password, "{}"',
    "<password>{}</password>",
    "password('{}')",
)


def _cell(template: str, row: str, *, name: bool) -> str:
    """Say what is masked: a letter where it is just the value, else from where to where."""
    notation = template.format(row)
    text = Text(notation)
    data = text.text.encode()
    found = find_edits(data)
    if not found:
        return "."
    if name:
        # The value of every column ends the text, but for a quote.
        end = len(data) - (data[-1:] in (b'"', b"'"))
        begin = _value_begin(data, end)
    else:
        begin = template.index("{}")
        end = len(data) - (len(template) - begin - 2)
    cells: list[str] = []
    for edit in found:
        code = _CODES.get(edit.family, edit.family)
        if (edit.begin, edit.end) != (begin, end):
            code += f"({edit.begin - begin},{edit.end - end})"
        cells.append(code)
    return "+".join(cells)


def _value_begin(data: bytes, end: int) -> int:
    """Return where the word begins that ends at a place."""
    begin = end
    while begin and data[begin - 1] not in b"= \"'":
        begin -= 1
    return begin


def table(columns: tuple[str, ...], rows: list[str], *, ends: bool) -> Answers:
    """Return what is masked of each row in each column; the first rows say what the columns are.

    With `ends`, the rows are names, and the value ends the text.
    """
    heads = [f"# {number}: {column}" for number, column in enumerate(columns)]
    return [
        (heads[int(row[2:].partition(":")[0])], "")
        if row.startswith("# ")
        else (row, " ".join(_cell(column, row, name=ends) for column in columns))
        for row in rows
    ]
