"""Facts about tools stand in one table."""

import ast
import re
from collections.abc import Iterator
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Final, get_args

import pytest

import steno
from steno.format import tool_catalogue as catalogue
from steno.format.tool_catalogue import AGENT, SKILL, TOOLS, older_names, rule_name, tool_facts
from steno.permissions.permission_rules import EDIT_TOOLS, READ_TOOLS
from steno.session.turns import tool_outcomes
from steno.tools.protocol import Tool, builtin_spec
from steno.tools.registry import ToolRegistry, builtin_tool_names, builtin_tools
from steno.web import tool_views

SOURCE: Final = Path(steno.__file__).parent
FEW: Final = 2
"""So many tools may be named side by side."""
ALLOWED: Final = {
    "format/tool_catalogue.py": "the table",
    "agent/subagents.py": "the tools of the built-in agent Explore are its own choice",
}
OWN: Final[list[Tool]] = builtin_tools()


def collections_in(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield every literal collection but `__all__`, which names classes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            continue
        values = [
            child.value
            for child in ast.iter_child_nodes(node)
            if isinstance(child, ast.Assign) and ast.unparse(child.targets[0]) == "__all__"
        ]
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Tuple | ast.List | ast.Set | ast.Dict) and child not in values:
                yield child
            if isinstance(child, ast.Constant) and isinstance(child.value, str):
                yield child


def names_in(node: ast.expr) -> set[str]:
    """Return the tools that a collection, or a text of nothing but names, names."""
    match node:
        case ast.Constant(value=str(text)):
            words = set(text.split())
            return words & set(TOOLS) if words <= set(TOOLS) else set()
        case ast.Dict(keys=keys, values=values):
            parts = [*(key for key in keys if key is not None), *values]
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            pass
        case ast.Starred(value=inner):
            parts = [inner]
        case _:
            return set()
    return set(chain.from_iterable(map(names_in, parts)))


def tables_in(path: Path) -> list[set[str]]:
    tree = ast.parse(path.read_text("utf-8"))
    return [names for each in collections_in(tree) if len(names := names_in(each)) > FEW]


def test_no_other_module_has_a_table_of_tools() -> None:
    tables = {str(path.relative_to(SOURCE)): found for path in SOURCE.rglob("*.py") if (found := tables_in(path))}
    # The table itself is made of calls, which name one tool each.
    assert set(tables) == set(ALLOWED) - {"format/tool_catalogue.py"}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("X = {'Bash': 1, 'Read': 2, 'Edit': 3}", {"Bash", "Read", "Edit"}),
        ("X = frozenset((*('Bash', 'Read'), 'Edit'))", {"Bash", "Read", "Edit"}),
        ("X = names('Bash Read Edit')", {"Bash", "Read", "Edit"}),
        ("f(x in ['Bash', 'Read', 'Edit'])", {"Bash", "Read", "Edit"}),
    ],
)
def test_a_table_is_found_in_any_form(tmp_path: Path, text: str, names: set[str]) -> None:
    path = tmp_path / "x.py"
    path.write_text(text)
    assert names in tables_in(path)


@pytest.mark.parametrize("tool", OWN, ids=lambda tool: tool.spec.name)
def test_a_tool_of_the_registry_has_its_facts_from_the_table(tool: Tool) -> None:
    spec, facts = tool.spec, TOOLS[tool.spec.name]
    assert not facts.current
    assert (spec.reads_only, spec.aliases) == (facts.reads_only, older_names(spec.name))
    fields = set(spec.schema["properties"])
    assert set(facts.subject_details) <= fields
    # `ExitPlanMode` and `TaskStop` take a field of older clients that they do not offer.
    assert not facts.subject or set(facts.subject) & fields or spec.name == "ExitPlanMode"
    if facts.file_action not in ("", "command"):
        assert facts.path_field in fields
    assert not (facts.reads_only and facts.edits_files)


def test_what_an_agent_adds_is_in_the_table() -> None:
    assert builtin_tool_names() <= set(TOOLS)
    assert {AGENT, SKILL} <= builtin_tool_names()
    with pytest.raises(KeyError):
        builtin_spec("Nobody", description="", schema={})


def test_a_call_by_any_name_finds_its_tool() -> None:
    registry = ToolRegistry(OWN)
    for facts in TOOLS.values():
        tool = registry.find(facts.name)
        if (facts.current or facts.name) in {each.spec.name for each in OWN}:
            assert tool is not None
            assert tool.spec.name == (facts.current or facts.name)
        else:
            assert tool is None


def test_an_older_name_leads_to_a_current_one_and_looks_the_same() -> None:
    older = [facts for facts in TOOLS.values() if facts.current]
    assert {facts.name for facts in older} >= {"Task", "KillBash", "KillShell", "BashOutput"}
    for facts in older:
        current = TOOLS[facts.current]
        assert not current.current
        same = ("icon", "kind", "view", "summary", "permission", "reads_only", "file_action")
        assert [getattr(facts, name) for name in same] == [getattr(current, name) for name in same]


def test_every_icon_is_in_the_sprite() -> None:
    sprite = files("steno.web").joinpath("static/icons.svg").read_text("utf-8")
    known = set(re.findall(r'<symbol id="i-(\w+)"', sprite))
    assert {facts.icon for facts in TOOLS.values()} <= known


def test_every_way_to_summarise_and_to_show_has_its_function() -> None:
    assert set(tool_outcomes._SUMMARIES) == set(get_args(catalogue.Summary))
    assert set(tool_views._TOOL_VIEWS) == set(get_args(catalogue.View))


def test_rules_cover_every_tool_that_reads_or_changes_a_file() -> None:
    assert catalogue.EDITING_TOOLS == EDIT_TOOLS
    assert set(catalogue.FILE_TOOLS) <= EDIT_TOOLS | READ_TOOLS
    assert [rule_name(name) for name in ("Task", "SlashCommand", "Bash", "mcp__x__y")] == [
        "Agent",
        "Skill",
        "Bash",
        "mcp__x__y",
    ]


def test_nothing_is_known_of_an_unknown_tool() -> None:
    facts = tool_facts("mcp__x__y")
    assert (facts.icon, facts.kind, facts.permission) == ("tool", "other", "ask")
