"""Write the typed views from the catalogue: `src/steno/format/views/`.

python tools/make_views.py            write them
python tools/make_views.py --check    exit 1 when a file is out of date
"""

import keyword
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from steno.format.catalogue import Catalogue, Field, Fields, JsonType, KindEntry, catalogue

FOLDER: Final = Path(__file__).parent.parent / "src" / "steno" / "format" / "views"
HEADER: Final = "Generated from catalogue.json by tools/make_views.py; do not edit."
WIDTH: Final = 100

BODIES: Final = {"attachment": "attachment", "progress": "data"}
MODULES: Final = {
    "attachments": "What attachment records carry.",
    "file_attachments": "What the attachments of files, folders and hooks carry.",
    "file_results": "What `toolUseResult` holds for the tools that read, write and search files.",
    "inputs": "What tools are called with.",
    "messages": "What user and assistant records carry beside the envelope and the message.",
    "progress": "What progress records carry.",
    "results": "What `toolUseResult` holds for all other tools.",
    "side": "What side records carry: titles, modes, snapshots, totals.",
    "system": "What system records carry.",
    "task_results": "What `toolUseResult` holds for tasks, to-do lists and sub-agents.",
}
FILE_TOOLS: Final = frozenset(
    ("Edit", "Glob", "Grep", "LS", "LSP", "MultiEdit", "NotebookEdit", "Read", "Write")
)
TASK_TOOLS: Final = re.compile("Agent|SendMessage|Task.*|Team.*|TodoWrite")
FILE_ATTACHMENTS: Final = re.compile(
    "attachment/(directory|edited_text_file|file|hook_.*|instructions|nested_memory"
    "|read_truncation_notice|selected_lines_in_ide)"
)
# The message and the tool result have readers of their own; `requestId` is on the record.
ELSEWHERE: Final = frozenset(("message", "requestId", "toolUseResult"))
ATTRIBUTES: Final = {
    "-A": "after",
    "-B": "before",
    "-C": "around",
    "-i": "ignore_case",
    "-n": "line_numbers",
    "-o": "only_matching",
}
SIMPLE: Final[dict[JsonType, str]] = {
    "str": "str",
    "num": "int | float",
    "bool": "bool",
    "obj": "dict[str, Any]",
    "arr": "list[Any]",
}


class Shape(NamedTuple):
    """One view to write: its module, its class, what it stands for, and its fields."""

    module: str
    name: str
    about: str
    fields: Fields

    @property
    def place(self) -> str:
        """Where the class is found from the package."""
        return f"{self.module}.{self.name}"


class Module:
    """One file of views; nested objects become views of their own, written before their user."""

    def __init__(self, name: str, shapes: list[Shape], usage: Fields) -> None:
        self._name = name
        self._usage = usage
        self._bodies: dict[str, str] = {shape.name: "" for shape in shapes}
        self._blocks: list[str] = []
        for shape in shapes:
            self._write(shape, self._body(shape))

    def text(self) -> str:
        """Return the whole file."""
        body = "\n\n".join(self._blocks)
        imports = (
            ("Any", "from typing import Any\n\n"),
            ("field(", "from msgspec import field\n\n"),
            ("View", "from steno.format.views.base import View\n\n"),
        )
        needed = "".join(line for word, line in imports if word in body)
        return f'"""{MODULES[self._name]}\n\n{HEADER}\n"""\n\n{needed}\n{body}'

    def _write(self, shape: Shape, body: str) -> None:
        head = f'class {shape.name}(View, frozen=True):\n    """{shape.about}"""\n'
        self._bodies[shape.name] = body
        self._blocks.append(head + body)

    def _body(self, shape: Shape) -> str:
        """Return the lines of a view; the views it needs are written by the way."""
        return (
            "".join(f"\n{self._line(*found, shape)}" for found in _attributes(shape.fields)) + "\n"
        )

    def _line(self, attribute: str, name: str, field: Field, owner: Shape) -> str:
        kind = self._type(name, field, owner)
        if attribute == name:
            return f"    {attribute}: {kind} = None"
        call = f'    {attribute}: {kind} = field(default=None, name="{name}")'
        if len(call) <= WIDTH:
            return call
        return f'    {attribute}: {kind} = field(\n        default=None, name="{name}"\n    )'

    def _type(self, name: str, field: Field, owner: Shape) -> str:
        wanted = [self._one(kind, name, field, owner) for kind in field.types if kind != "null"]
        return " | ".join([*wanted, "None"]) if wanted else "Any"

    def _one(self, kind: JsonType, name: str, field: Field, owner: Shape) -> str:
        sub = self._usage if field.ref == "usage" else field.sub
        if kind == "obj" and sub:
            return self._view(name, sub, owner)
        if kind == "obj" and field.values:
            return f"dict[str, {self._view(_singular(name), field.values, owner)}]"
        if kind == "arr" and field.items and not field.of:
            return f"list[{self._view(_singular(name), field.items, owner)}]"
        if kind == "arr" and len(field.of) == 1 and field.of[0] in ("str", "num", "bool"):
            return f"list[{SIMPLE[field.of[0]]}]"
        return SIMPLE[kind]

    def _view(self, name: str, fields: Fields, owner: Shape) -> str:
        """Return the name of a nested view, writing it unless the same one is there already."""
        about = f"`{name}` in {owner.about.partition(',')[0].rstrip('.')}."
        shape = Shape(self._name, _pascal(name), about, fields)
        body = self._body(shape)
        if self._bodies.get(shape.name) == body:
            return shape.name
        if shape.name in self._bodies:
            shape = shape._replace(name=owner.name + shape.name)
        self._write(shape, body)
        return shape.name


def build(facts: Catalogue) -> dict[str, str]:
    """Return the text of every generated file by its name."""
    kinds = _kind_shapes(facts)
    inputs = dict(_tool_shapes(facts, "input"))
    results = dict(_tool_shapes(facts, "result"))
    shapes = [*kinds.values(), *inputs.values(), *results.values()]
    files = {
        f"{name}.py": Module(
            name, [shape for shape in shapes if shape.module == name], facts.usage
        ).text()
        for name in MODULES
    }
    return {**files, "index.py": _index(facts, kinds, inputs, results)}


def _kind_shapes(facts: Catalogue) -> dict[str, Shape]:
    """Return the view of every kind; a kind that several dialects have gets the fields of all.

    A kind of which nothing but the name is known gets none, so that its fields stay in reach.
    """
    merged: dict[str, Fields] = {}
    first: dict[str, KindEntry] = {}
    for entry in facts.kinds():
        first.setdefault(entry.name, entry)
        merged[entry.name] = {**_own(facts, entry), **merged.get(entry.name, {})}
    names = _class_names(first.values())
    return {
        kind: Shape(_module(first[kind]), names[kind], _about(first[kind]), fields)
        for kind, fields in sorted(merged.items())
        if fields
    }


def _own(facts: Catalogue, entry: KindEntry) -> Fields:
    """Return the fields of a kind that belong on its view, the body's lifted out."""
    hidden = {*facts.envelopes["claude"], *(ELSEWHERE if entry.family == "graph" else ())}
    fields = {name: field for name, field in facts.fields(entry).items() if name not in hidden}
    body = fields.pop(BODIES.get(entry.name.partition("/")[0], ""), None)
    if body:
        fields |= {name: field for name, field in body.sub.items() if name != "type"}
    return fields


def _tool_shapes(facts: Catalogue, side: str) -> Iterator[tuple[str, Shape]]:
    for tool, entry in sorted(facts.tools.items()):
        fields = entry.input if side == "input" else entry.result
        module = "inputs" if side == "input" else _result_module(tool)
        if fields:
            yield tool, Shape(module, f"{tool}{side.title()}", f"The {side} of `{tool}`.", fields)


def _result_module(tool: str) -> str:
    if tool in FILE_TOOLS:
        return "file_results"
    return "task_results" if TASK_TOOLS.fullmatch(tool) else "results"


def _class_names(entries: Iterable[KindEntry]) -> dict[str, str]:
    """Return a class name per kind: its last part, all of it where that is taken or too short."""
    names: dict[str, str] = {}
    taken: set[tuple[str, str]] = set()
    for entry in sorted(entries, key=lambda entry: "/" in entry.name):
        outer, _, last = entry.name.partition("/")
        short = _pascal(last if last and outer not in ("user", "assistant") else entry.name)
        place = (_module(entry), short)
        names[entry.name] = _pascal(entry.name) if place in taken else short
        taken.add(place)
    return names


def _module(entry: KindEntry) -> str:
    outer = entry.name.partition("/")[0]
    if outer == "attachment":
        return "file_attachments" if FILE_ATTACHMENTS.fullmatch(entry.name) else "attachments"
    if outer in ("progress", "system"):
        return outer
    return "messages" if entry.family == "graph" else "side"


def _about(entry: KindEntry) -> str:
    if entry.dialect != "claude":
        return f"`{entry.name}`, published in {entry.dialect}."
    if entry.claimed:
        return f"`{entry.name}`, known from others only."
    first, last = entry.seen[0], entry.seen[-1]
    return f"`{entry.name}`, {first} to {last}." if first != last else f"`{entry.name}`, {last}."


def _attributes(fields: Fields) -> list[tuple[str, str, Field]]:
    """Return attribute, field name and field; of `agentId` and `agent_id` the latter gives way."""
    found: dict[str, tuple[str, Field]] = {}
    for name, field in sorted(fields.items(), key=lambda pair: pair[0].islower()):
        attribute = _snake(name)
        found[f"{attribute}_snake" if attribute in found else attribute] = (name, field)
    return [(attribute, *rest) for attribute, rest in sorted(found.items())]


def _snake(name: str) -> str:
    """Return the attribute a field goes by: `toolUseID` is `tool_use_id`."""
    if name in ATTRIBUTES:
        return ATTRIBUTES[name]
    plain = name.replace("UUIDs", "Uuids").replace("IDs", "Ids").strip("_")
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", plain).lower()
    return f"{spaced}_" if keyword.iskeyword(spaced) else spaced


def _pascal(name: str) -> str:
    return "".join(word.title() for word in re.split(r"[-_/]", _snake(name)))


def _singular(name: str) -> str:
    if name.endswith("ies"):
        return f"{name[:-3]}y"
    return name[:-1] if name.endswith("s") else f"{name}Item"


def _index(facts: Catalogue, *tables: dict[str, Shape]) -> str:
    """Return the file that says where each view is, and which fields are the envelope's."""
    envelope = "".join(f'        "{name}",\n' for name in sorted(facts.envelopes["claude"]))
    parts = [
        f'"""Where the view of each kind and tool is.\n\n{HEADER}\n"""\n',
        "from typing import Final\n",
        f"ENVELOPE: Final = frozenset(\n    (\n{envelope}    )\n)\n",
    ]
    for title, table in zip(("KINDS", "INPUTS", "RESULTS"), tables, strict=True):
        rows = "".join(f'    "{name}": "{shape.place}",\n' for name, shape in table.items())
        parts.append(f"{title}: Final[dict[str, str]] = {{\n{rows}}}\n")
    return "\n".join(parts)


def main(arguments: list[str]) -> int:
    """Write the files, or with `--check` say which are out of date."""
    stale = 0
    for name, text in build(catalogue()).items():
        path = FOLDER / name
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale += 1
        if "--check" in arguments:
            print(f"{path} is out of date; run tools/make_views.py")
        else:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path}")
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
