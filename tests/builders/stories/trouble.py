"""What no one wants to meet: a file that was cut while it was written, and text that bites."""

from typing import Final

from tests.builders.blocks import tool
from tests.builders.builder import Session
from tests.builders.stories.kit import bash, begin, read

__all__ = ["stories"]

_ORPHAN: Final = "7d1f0c52-0b6e-4b43-9a44-1c2d8e5f9a10"


def stories() -> list[Session]:
    """Return the damaged and the hostile session."""
    return [_damaged(), _hostile()]


def _damaged() -> Session:
    """Power went out twice: a splice, a run of NULs, a lost record, a torn tail."""
    made = begin(
        "2.1.42", seed="trouble-1", cwd="/home/ada/ledger-import", start="2026-11-12T06:50:00.000Z", full=False
    )
    made.turn("Export last week for the tax office.", "I'll start with Monday.")
    for day in ("Monday", "Tuesday", "Wednesday", "Thursday"):
        made.user(f"Go on with {day}.")
        made.assistant(bash(f"python -m ledger export --day {day}", f"Export {day}"))
        made.result(f"{day}: wrote 12 entries").assistant(f"{day} is exported.")
    made.user("And Friday.").assistant(bash("python -m ledger export --day Friday", "Export Friday"))
    # Lines: 0-1 the first turn, then four a day from 2 on; Friday's prompt is 18, its call 19.
    return made.splice(5, 220).nul_run(10, 2048).retarget(14, _ORPHAN).torn_tail(90)


def _hostile() -> Session:
    """Escape sequences, markup, reversed text and a formula, all in ordinary places."""
    made = begin(seed="trouble-2", cwd="/home/ada/sites/gravel", start="2026-11-12T20:15:00.000Z", full=False)
    made.user("Show me what is in the guest book, please. <b>All</b> of it.")
    made.assistant("I'll print it as it is.", bash("cat guestbook.txt", "Show the guest book"))
    made.result(
        "\x1b[2J\x1b[H\x1b]0;owned\x07\x1b[31mred\x1b[0m and \x1b[8mhidden\x1b[0m\n"
        "\x1b]8;;https://example.com/\x1b\\click\x1b]8;;\x1b\\ \x9b31m \x1bP0;1|17/ab\x1b\\\n"
        "[bold red]not markup[/bold red] [link=https://example.com]nor this[/link] [/]\n"
        "<script>alert('hello')</script><img src=x onerror=alert(1)><svg onload=alert(2)>\n"
        "]]> --> </textarea></title> {{7*7}} ${7*7} <%= 7*7 %> javascript:alert(3)\n"
        "invoice\u202egnp.exe \u2066right\u2069 zero\u200bwidth\u200djoin \ufeffmark\n"
        '=HYPERLINK("https://example.com","sum")\t+1+1\t@SUM(A1)\t-2\n'
        "'; DROP TABLE sessions; -- $(touch owned) `touch owned` %s %n\r\nover\rwritten\b\b\b"
    )
    made.assistant(tool("Read", file_path="/home/ada/sites/gravel/../../../etc/hosts\u202etxt.elif"))
    made.result("127.0.0.1 localhost\n")
    made.assistant(read("/home/ada/sites/gravel/<img src=x>.md"))
    made.result("Exit code 1\n\x1b[1mno such file\x1b[0m", error=True)
    made.assistant(
        "The guest book holds escape sequences and markup that nothing should run:\n\n"
        "<details open ontoggle=alert(4)><summary>more</summary></details>\n\n"
        "[a link](javascript:alert(5)) ![a picture](https://example.com/pixel.png)\n\n"
        "```html\n</code></pre><script>alert(6)</script>\n```\n\nZ̴̡̛͎̗a̷l̸g̷o̵ too. \x1b[5mBlink.\x1b[0m"
    )
    return made.title("Guest book <script>alert(7)</script> \x1b[31m[bold]").done()
