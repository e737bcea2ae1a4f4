"""Write the JSON Schema and the reference of `steno brief --json`, from the structs.

python -m tools.make_brief_schema            write docs/reference/brief.schema.json and brief-json.md
python -m tools.make_brief_schema --check    exit 1 if one of them is out of date
"""

import ast
import json
import sys
from pathlib import Path
from typing import Any, Final

import msgspec

from steno.report.brief import brief_document
from steno.report.brief.brief_document import SCHEMA_VERSION, BriefDocument

FOLDER: Final = Path(__file__).parent.parent / "docs" / "reference"
SCHEMA: Final = FOLDER / "brief.schema.json"
PAGE: Final = FOLDER / "brief-json.md"
_NAMES: Final = {"string": "text", "boolean": "true or false"}
INTRO: Final = f"""\
# `steno brief --json`

<!-- Generated from the structs of a brief by tools/make_brief_schema.py; do not edit. -->

The JSON output of `steno brief --json`, version {SCHEMA_VERSION}. [brief.schema.json](brief.schema.json) is the JSON Schema (2020-12).
[Build a memory](../guide/share/memory.md) has a program that reads it.

- `schema_version` increases when a field is removed or changes its meaning. New fields do not increase it: ignore
  unknown fields.
- Every field is always present. Unknown values are `null`, `""` or an empty list.
- Times are ISO 8601 in UTC, durations are seconds, sizes are characters.
- `--budget` omits or shortens the least important items. `omitted` counts omitted items by name, and shortened texts
  end in `[N more characters]`. Texts of an `answer` then appear only in `answer`, and `idle` turns are omitted without
  being counted.
- Parameters of calls longer than 2,000 characters are cut, with their full size in `cut`; `--full` keeps them whole.
- Secrets are masked, unless `--no-redact` is given.
- All text is quoted from sessions, as `notice` says: control characters are made visible, and nothing in it is an
  instruction.
"""


def build() -> dict[Path, str]:
    """Return the content of each file."""
    schema = make_schema()
    return {
        SCHEMA: json.dumps(schema, indent=2, ensure_ascii=False) + "\n",
        PAGE: "\n".join([INTRO, *_sections(schema)]),
    }


def make_schema() -> dict[str, Any]:
    """Return the JSON Schema of the structs, with the descriptions of their fields."""
    made = msgspec.json.schema(BriefDocument)
    described = _described(brief_document)
    for name, definition in made["$defs"].items():
        properties = definition["properties"]
        for field, rules in properties.items():
            rules["description"] = described[name, field]
            rules.pop("default", None)
            for each in (rules, *rules.get("anyOf", ())):
                if each.get("format") == "date-time":
                    each["type"] = "string"
        # Every field is written, so all are required.
        definition["required"] = list(properties)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"steno brief, version {SCHEMA_VERSION}",
        **made,
    }


def _described(module: Any) -> dict[tuple[str, str], str]:
    """Return the docstring of each field of the structs in a module."""
    found: dict[tuple[str, str], str] = {}
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    for struct in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        for field, behind in zip(struct.body, struct.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                said = _text(behind)
                if said:
                    found[struct.name, field.target.id] = " ".join(said.split())
    return found


def _text(node: ast.stmt) -> str:
    value = node.value if isinstance(node, ast.Expr) else None
    is_text = isinstance(value, ast.Constant) and isinstance(value.value, str)
    return str(value.value) if is_text and isinstance(value, ast.Constant) else ""


def _sections(schema: dict[str, Any]) -> list[str]:
    definitions = schema["$defs"]
    first = BriefDocument.__name__
    names = [first, "Brief", "BriefTurn"]
    names += [name for name in definitions if name not in names]
    return [_section(name, definitions[name]) for name in names]


def _section(name: str, definition: dict[str, Any]) -> str:
    head = "The document" if name == BriefDocument.__name__ else name
    about = definition.get("description", "")
    rows = [
        f"| `{field}` | {_type(rules)} | {rules['description'].replace('|', ' or ')} |"
        for field, rules in definition["properties"].items()
    ]
    return "\n".join([f"## {head}\n", f"{about}\n", "| field | type | |", "|---|---|---|", *rows, ""])


def _type(rules: dict[str, Any]) -> str:
    if "$ref" in rules:
        name = rules["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "enum" in rules:
        return ", ".join(f"`{value}`" for value in rules["enum"])
    if "anyOf" in rules:
        return " or ".join(_type(each) for each in rules["anyOf"])
    if rules.get("type") == "array":
        return f"list of {_type(rules['items'])}"
    if rules.get("format") == "date-time":
        return "time"
    kind: str = rules.get("type", "anything")
    inner: Any = rules.get("additionalProperties")
    if kind == "object" and inner:
        return f"object of {_type(inner)}"
    return _NAMES.get(kind, kind)


def main(arguments: list[str]) -> int:
    """Write the files, or check whether they are up to date."""
    stale = 0
    for path, text in build().items():
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        if "--check" in arguments:
            sys.stderr.write(f"{path} is out of date: run make docs\n")
            stale = 1
        else:
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"wrote {path}\n")
    return stale


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
