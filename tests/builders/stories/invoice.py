"""The invoice renderer: a picture, compaction, sub-agents in the background, an open question."""

from typing import Final

from tests.builders.blocks import image, png, text, thinking, tool
from tests.builders.builder import Session
from tests.builders.stories.kit import bash, begin, edit, grep, read, write

__all__ = ["stories"]

_CWD: Final = "/home/ada/invoice-render"
_TEMPLATE: Final = f"{_CWD}/templates/invoice.html"
_TOTALS: Final = f"{_CWD}/src/totals.ts"

_TEMPLATE_CODE: Final = """<table class="lines">
  <tr><th>Item</th><th>Count</th><th>Price</th></tr>
  {{#each lines}}
  <tr><td>{{item}}</td><td>{{count}}</td><td>{{price}}</td></tr>
  {{/each}}
</table>
<p class="total">{{total}}</p>
"""

_TOTALS_CODE: Final = """export interface Line { item: string; count: number; price: number }

export function total(lines: Line[], tax = 0.19): number {
  const net = lines.reduce((sum, line) => sum + line.count * line.price, 0);
  return Math.round(net * (1 + tax) * 100) / 100;
}
"""


def stories() -> list[Session]:
    """Return the sessions of this project, oldest first."""
    return [_column(), _question(), _locales()]


def _picture() -> bytes:
    """Draw an invoice whose right column is cut off: grey paper, blue lines, a red edge."""
    paper, line, edge = (236, 236, 232), (70, 98, 150), (190, 60, 50)
    blank = [paper] * 38 + [edge] * 2
    written = [paper] * 4 + [line] * 34 + [edge] * 2
    return png([written if y % 4 == 0 else blank for y in range(1, 24)])


def _column() -> Session:
    """A picture, results in a tree, progress records, a sub-agent in the background, `/compact`."""
    made = begin("2.1.42", seed="invoice-1", cwd=_CWD, start="2026-11-05T13:05:00.000Z")
    made.have(_TEMPLATE, _TEMPLATE_CODE).have(_TOTALS, _TOTALS_CODE)
    made.user([text("The last column is cut off in print, see the picture."), image(_picture())])
    made.assistant(
        thinking("The table has no width; the page has margins."),
        "I see it: the price runs into the red margin. Two files decide about that.",
        read(_TEMPLATE),
        grep("width", f"{_CWD}/templates"),
    )
    made.result().result("templates/print.css:4:  .lines { width: 110%; }").much(17_000)
    made.assistant(edit(_TEMPLATE, '<table class="lines">', '<table class="lines fit">')).result()
    made.assistant(bash("npm test -- --run", "Run the tests"))
    made.bash_progress("RUN  v3.2.1", "RUN  v3.2.1\n ✓ totals (12)\n").wait(5)
    made.result(" ✓ totals (12)\n ✓ render (31)\n\n Test Files  2 passed (2)\n      Tests  43 passed")
    made.hook("PostToolUse", "callback", tool="Bash")
    made.assistant("The table is as wide as the page now, and no wider.")
    _background(made)
    made.compact(
        "The user asked for a fix of the invoice's print layout. `.lines` was 110 % wide; the "
        "template now uses the class `fit`. A sub-agent found the same rule in the reminder "
        "letter. Open: the letter."
    ).command("compact", says="Compacted")
    made.user("Fix the letter as well.")
    letter = f"{_CWD}/templates/letter.html"
    made.have(letter, '<table class="lines">\n</table>\n').assistant(read(letter)).result()
    made.assistant(edit(letter, 'class="lines"', 'class="lines fit"')).result()
    return made.assistant("Done: the reminder letter uses the same class.").exit()


def _background(made: Session) -> None:
    made.user("Check in the background whether other templates have the same fault.")
    made.assistant(
        "I'll have that looked at while we go on.",
        tool(
            "Task",
            description="Check the other templates",
            prompt="Which templates use .lines, and are they too wide in print?",
            subagent_type="general-purpose",
            run_in_background=True,
        ),
    ).agent(_other_templates, background=True)
    made.assistant("It is being checked; I'll tell you when it is done.").wait(40).notify()
    made.assistant("The check is back: only `letter.html` has the same fault.").done()


def _other_templates(agent: Session) -> None:
    agent.assistant("I search the templates.", grep('class="lines"', f"{_CWD}/templates"))
    agent.result('templates/letter.html:9:<table class="lines">')
    agent.hook("PostToolUse", "callback", tool="Grep")
    agent.assistant("Only `templates/letter.html` uses `.lines`, and it is too wide in print.")


def _question() -> Session:
    """Waits for an answer: the last record is a call without a result."""
    made = begin(seed="invoice-2", cwd=_CWD, start="2026-11-09T17:40:00.000Z")
    made.have(_TOTALS, _TOTALS_CODE)
    made.user("Add the reduced tax rate for books.")
    made.assistant("First, how tax is worked out now.", read(_TOTALS)).result()
    made.assistant(
        "A rate per line changes what is printed, so I need a decision from you.",
        tool(
            "AskUserQuestion",
            questions=[
                {
                    "question": "How shall two tax rates be shown on one invoice?",
                    "header": "Tax",
                    "multiSelect": False,
                    "options": [
                        {"label": "One line per rate", "description": "Net and tax are listed by rate"},
                        {"label": "One sum", "description": "Only the total tax is printed"},
                    ],
                }
            ],
        ),
    )
    return made.last_prompt().mode().permission_mode()


def _locales() -> Session:
    """Sub-agents in parallel and below each other, and a conversation that ran full."""
    made = begin(seed="invoice-3", cwd=_CWD, branch="locales", start="2026-11-11T09:12:00.000Z")
    made.have(_TOTALS, _TOTALS_CODE)
    made.user("Prepare the renderer for three languages. Divide the work.")
    calls = [
        tool(
            "Agent",
            description=f"Survey {name}",
            subagent_type="Explore",
            prompt=f"What must change in {name} for other languages?",
        )
        for name in ("templates", "dates and numbers")
    ]
    made.assistant("Two surveys at once.", *calls).agent(_templates).agent(_numbers)
    made.much(24_000)
    made.assistant(
        "Both surveys agree: no text may stay in the templates.",
        write(
            f"{_CWD}/src/words.ts",
            'export const words = {\n  de: { total: "Summe" },\n  en: { total: "Total" },\n'
            '  fr: { total: "Total" },\n};\n',
        ),
    ).result()
    build = bash("npm run build", "Build")
    made.assistant(build).wait(6).result("dist/render.js  48.1 kB │ gzip: 14.2 kB\n✓ built in 3.91s")
    made.assistant("The words live in `src/words.ts` now. Next come dates.")
    made.compact(
        "Three languages are wanted. Words are in `src/words.ts`; dates and amounts are "
        "still written the German way in `src/format.ts`.",
        trigger="auto",
        keep=2,
    )
    made.user("Go on with the dates.")
    made.assistant(edit(_TOTALS, "tax = 0.19", "tax = rate(lines)")).result()
    return (
        made.assistant(
            "Dates and amounts now come from `Intl`, by language:\n\n"
            "1. `14.11.2026` and `1.234,56 €`\n2. `14/11/2026` and `€1,234.56`"
        )
        .title("Three languages")
        .exit()
    )


def _templates(agent: Session) -> None:
    agent.assistant("I count the words in the templates.", grep("[A-Z][a-z]+<", "templates"))
    agent.result("templates/invoice.html:2:<th>Item</th>\ntemplates/invoice.html:2:<th>Count</th>")
    agent.assistant(
        tool(
            "Agent",
            description="Check the letter",
            subagent_type="Explore",
            prompt="Does templates/letter.html hold German text?",
        )
    )
    agent.agent(_letter).assistant("Seven words in two templates, four of them in the letter.")


def _letter(agent: Session) -> None:
    agent.assistant(read(f"{_CWD}/templates/letter.html"))
    agent.result("<p>Sehr geehrte Damen und Herren,</p>\n").assistant("Yes, all of it is German.")


def _numbers(agent: Session) -> None:
    agent.assistant("I look for formatting by hand.", grep("toFixed|replace", f"{_CWD}/src"))
    agent.result("src/format.ts:3:  return value.toFixed(2).replace('.', ',')")
    agent.assistant("`src/format.ts` writes amounts by hand; `Intl.NumberFormat` would do it.")
