"""Generate the reference of findings from the rules: `docs/reference/findings/`.

python -m tools.make_findings_docs            write the pages
python -m tools.make_findings_docs --check    exit 1 if a page is out of date
"""

import sys
from pathlib import Path
from typing import Final

from steno.check.checkup import FAMILIES, RULES
from steno.check.evidence import RuleFamily
from steno.check.findings import Rule

FOLDER: Final = Path(__file__).parent.parent / "docs" / "reference" / "findings"
MARK: Final = "<!-- Generated from the rules by tools/make_findings_docs.py; do not edit. -->"

INTRO: Final = f"""\
# Findings

{MARK}

All rules of `steno check`, by family. IDs are stable. For usage, see
[Check sessions](../../guide/fix/check.md).

| Severity | Meaning |
|---|---|
| error | Content is lost, or the latest Claude Code or the API rejects it |
| warning | Claude Code has to guess, or an older version fails |
| info | Unusual but harmless; shown by `steno check --all` |

Many findings become info if the record is not part of the current conversation (compacted away,
abandoned, or of a sub-agent). Rules can be silenced and their severities changed: see
[configuration](../configuration.md).
"""


def build() -> dict[str, str]:
    """Return the content of every page by file name."""
    families = [family for family in FAMILIES if family.rules]
    made = {f"{_name(family)}.md": _family(family) for family in families}
    return {"index.md": "\n".join([INTRO, *map(_listing, families)]), **made}


def _name(family: type[RuleFamily]) -> str:
    return family.rules[0].family


def _listing(family: type[RuleFamily]) -> str:
    name = _name(family)
    rows = [f"## [{name}]({name}.md)\n", _about(family), "| ID | Severity | Problem |", "|---|---|---|"]
    rows += [
        f"| [`{rule.id}`]({name}.md#{_anchor(rule)}) | {rule.severity} | {_cell(rule.title)} |" for rule in family.rules
    ]
    return "\n".join(rows) + "\n"


def _about(family: type[RuleFamily]) -> str:
    first = (family.__doc__ or "").strip().partition("\n\n")[0].replace("\n", " ")
    return f"{first}\n" if first else ""


def _family(family: type[RuleFamily]) -> str:
    head = f"# Findings: {_name(family)}\n\n{MARK}\n\n{_about(family)}"
    return "\n".join([head, *map(_rule, family.rules), "[All findings](index.md)\n"])


def _rule(rule: Rule) -> str:
    parts = [f"## {rule.id}\n", f"**{rule.severity}**: {_text(rule.title)}.\n", f"{_text(rule.hint)}\n"]
    if rule.why:
        parts.append(f"{_text(rule.why)}\n")
    return "\n".join(parts)


def _anchor(rule: Rule) -> str:
    """Return the anchor of a rule's heading."""
    return rule.id.replace(".", "")


def _text(text: str) -> str:
    """Return a text as Markdown, with `<` outside code escaped so that it is not read as a tag."""
    parts = text.split("`")
    return "`".join(part if at % 2 else part.replace("<", "&lt;") for at, part in enumerate(parts))


def _cell(text: str) -> str:
    return _text(text).replace("|", "\\|")


def main(arguments: list[str], folder: Path = FOLDER) -> int:
    """Write the pages, or with `--check` report whether one is out of date."""
    if not RULES:
        print("no rules found")
        return 1
    pages = build()
    there = {path.name for path in folder.glob("*.md")} if folder.is_dir() else set[str]()
    stale = [name for name, text in pages.items() if _read(folder / name) != text]
    gone = there - set(pages)
    if not stale and not gone:
        return 0
    if "--check" in arguments:
        print(f"{folder} is out of date; run `make docs`")
        return 1
    folder.mkdir(parents=True, exist_ok=True)
    for name in gone:
        (folder / name).unlink()
    for name in stale:
        (folder / name).write_text(pages[name], encoding="utf-8")
        print(f"wrote {folder / name}")
    return 0


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
