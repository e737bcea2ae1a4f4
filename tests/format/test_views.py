"""Views give a record's own fields typed, whatever the record holds."""

import gc
import json
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steno.format.catalogue import catalogue
from steno.format.lines import read_bytes
from steno.format.record_views import (
    GenericView,
    View,
    input_type,
    input_view,
    result_type,
    result_view,
    view_of,
    view_type,
)
from steno.format.records import Record

KINDS = sorted({kind.name for kind in catalogue().kinds()})
VIEWS: dict[str, Any] = {kind: view_type(kind) for kind in KINDS if view_type(kind)}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def as_bytes(value: Any) -> bytes:
    return json.dumps(value).encode()


def view(kind: str, **fields: Any) -> View:
    return view_of(kind, as_bytes({"type": kind.partition("/")[0], "uuid": "u", **fields}))


def test_every_kind_with_a_field_of_its_own_has_a_view() -> None:
    without = set(KINDS) - set(VIEWS)
    assert all(VIEWS[kind].__struct_fields__ for kind in VIEWS)
    assert {"user/prompt", "system/turn_duration", "attachment/date", "human", "mode"} <= set(VIEWS)
    assert "system/agents_killed" in without


def test_views_are_not_loaded_before_one_is_asked_for() -> None:
    code = "import sys, steno; sys.exit('steno.format.record_views' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_struct_of_a_kind_or_tool_is_built_once() -> None:
    assert view_type("mode") is view_type("mode")
    assert input_type("Edit") is input_type("Edit")
    assert result_type("Edit") is result_type("Edit")


def test_nested_structs_of_the_same_fields_are_one() -> None:
    line = b'{"structuredPatch":[{"oldStart":1}]}'
    edit, write = result_view("Edit", line), result_view("Write", line)
    assert isinstance(edit, View)
    assert isinstance(write, View)
    assert edit != write
    assert edit.structured_patch == write.structured_patch


def test_names_that_the_catalogue_does_not_have_are_not_kept() -> None:
    class Name(str):
        __slots__ = ("__weakref__",)

    for struct_type_of in (view_type, input_type, result_type):
        name = Name("unheard")
        reference = weakref.ref(name)
        assert struct_type_of(name) is None
        del name
        gc.collect()
        assert reference() is None


def test_attributes_have_the_types_of_the_catalogue() -> None:
    fields = msgspec.structs.fields(VIEWS["system/turn_duration"])
    types = {field.name: field.type for field in fields}
    assert (types["duration_ms"], types["is_meta"]) == (int | float | None, bool | None)


def test_a_system_record_gives_its_own_fields() -> None:
    found = view("system/turn_duration", subtype="turn_duration", durationMs=1200, messageCount=4)
    assert isinstance(found, VIEWS["system/turn_duration"])
    assert (found.duration_ms, found.message_count, found.is_meta) == (1200, 4, None)


def test_nested_objects_are_views_of_their_own() -> None:
    found = view(
        "system/compact_boundary",
        compactMetadata={"trigger": "auto", "preTokens": 9, "preservedSegment": {"headUuid": "h"}},
    )
    assert isinstance(found, VIEWS["system/compact_boundary"])
    assert found.compact_metadata is not None
    assert found.compact_metadata.trigger == "auto"
    assert found.compact_metadata.preserved_segment is not None
    assert found.compact_metadata.preserved_segment.head_uuid == "h"


def test_arrays_and_maps_of_objects_are_typed() -> None:
    hooks = view("system/stop_hook_summary", hookInfos=[{"command": "lint", "durationMs": 3}])
    assert isinstance(hooks, VIEWS["system/stop_hook_summary"])
    assert hooks.hook_infos is not None
    assert hooks.hook_infos[0].command == "lint"
    backups = {"a.py": {"backupFileName": None, "version": 1, "backupTime": "t"}}
    files = view("file-history-snapshot", snapshot={"trackedFileBackups": backups})
    assert isinstance(files, VIEWS["file-history-snapshot"])
    assert files.snapshot is not None
    assert files.snapshot.tracked_file_backups is not None
    assert files.snapshot.tracked_file_backups["a.py"].version == 1


def test_what_an_attachment_carries_is_lifted_out_of_it() -> None:
    found = view(
        "attachment/hook_success",
        attachment={"type": "hook_success", "hookEvent": "Stop", "exitCode": 0, "toolUseID": "t"},
        renderedRole="user",
        rendered=[{"content": "hi"}],
    )
    assert isinstance(found, VIEWS["attachment/hook_success"])
    assert (found.hook_event, found.exit_code, found.tool_use_id) == ("Stop", 0, "t")
    assert found.rendered is not None
    assert (found.rendered_role, found.rendered[0].content) == ("user", "hi")


def test_the_envelope_does_not_leak_into_what_is_lifted_out() -> None:
    found = view("attachment/queued_command", timestamp="outer", attachment={"prompt": "more"})
    assert isinstance(found, VIEWS["attachment/queued_command"])
    assert (found.prompt, found.timestamp) == ("more", None)


def test_what_a_progress_record_carries_is_lifted_out_of_it() -> None:
    found = view("progress/bash_progress", toolUseID="t", data={"output": "ok", "totalLines": 1})
    assert isinstance(found, VIEWS["progress/bash_progress"])
    assert (found.output, found.total_lines, found.tool_use_id) == ("ok", 1, "t")


def test_fields_of_a_published_dialect_stand_beside_the_real_ones() -> None:
    found = view("assistant/tool_use", toolName="Write", toolArguments={"a": 1}, isAborted=True)
    assert isinstance(found, VIEWS["assistant/tool_use"])
    assert (found.tool_name, found.tool_arguments, found.is_aborted) == ("Write", {"a": 1}, True)


def test_a_kind_that_is_not_known_gives_its_fields() -> None:
    found = view("brand-new", shiny=[1], sessionId="s")
    assert isinstance(found, GenericView)
    assert found.fields == {"shiny": [1]}
    inner = view("attachment/brand_new", attachment={"type": "brand_new", "shiny": 1})
    assert isinstance(inner, GenericView)
    assert inner.fields == {"type": "brand_new", "shiny": 1}


def test_a_field_of_the_wrong_type_is_none_and_the_rest_is_there() -> None:
    found = view("last-prompt", lastPrompt={"not": "text"}, leafUuid="u1", explicit="yes")
    assert found == VIEWS["last-prompt"](leaf_uuid="u1")


def test_a_wrong_type_deep_inside_costs_that_field_alone() -> None:
    found = view("cost-state", totalCostUSD=1.5, modelUsage={"opus": {"costUSD": "dear", "inputTokens": 7}})
    assert isinstance(found, VIEWS["cost-state"])
    assert found.total_cost_usd == 1.5
    assert found.model_usage is not None
    assert (found.model_usage["opus"].cost_usd, found.model_usage["opus"].input_tokens) == (None, 7)


def test_an_array_with_a_stray_element_is_none() -> None:
    found = view("system/stop_hook_summary", hookInfos=[{"command": "lint"}, 7], hookCount=2)
    assert found == VIEWS["system/stop_hook_summary"](hook_count=2)


@pytest.mark.parametrize(
    "odd",
    [b"NaN", b"-Infinity", b"1e999", b"9" * 5000, b'"\\ud800"', b'"\xff"', b"[" * 100 + b"]" * 100, b"null", b"{}"],
)
def test_a_value_that_is_refused_does_not_take_the_others_along(odd: bytes) -> None:
    line = b'{"type":"user","permissionMode":%s,"promptSource":"typed"}' % odd
    found = view_of("user/prompt", line)
    assert isinstance(found, VIEWS["user/prompt"])
    assert found.prompt_source == "typed"
    assert found.permission_mode is None or "\ufffd" in found.permission_mode


@pytest.mark.parametrize("line", [b"", b"[]", b"null", b"{", b"\x00", b'{"a":' * 100_000])
def test_what_is_no_object_gives_an_empty_view(line: bytes) -> None:
    assert view_of("mode", line) == VIEWS["mode"]()
    assert view_of("attachment/date", line) == VIEWS["attachment/date"]()
    assert view_of("brand-new", line) == GenericView()


def test_a_tool_result_is_a_view() -> None:
    bash = result_view("Bash", as_bytes({"stdout": "hi", "stderr": "", "interrupted": False}))
    assert isinstance(bash, View)
    assert type(bash).__name__ == "BashResult"
    assert (bash.stdout, bash.stderr, bash.interrupted) == ("hi", "", False)
    read = result_view("Read", as_bytes({"type": "text", "file": {"numLines": 3}}))
    assert isinstance(read, View)
    assert read.file is not None
    assert read.file.num_lines == 3
    patch = [{"oldStart": 1, "lines": ["-a", "+b"]}]
    edit = result_view("Edit", as_bytes({"structuredPatch": patch, "replaceAll": 1}))
    assert isinstance(edit, View)
    assert edit.structured_patch is not None
    assert (edit.structured_patch[0].lines, edit.replace_all) == (["-a", "+b"], None)


def test_a_tool_result_can_be_a_string_a_list_or_nothing() -> None:
    assert result_view("Bash", b'"Error: no"') == "Error: no"
    assert result_view("mcp__git__log", b'[{"type":"text"}]') == [{"type": "text"}]
    assert result_view("Bash", b"null") is None
    assert result_view("Bash", b"7") is None
    assert result_view("Bash", b"") is None
    assert result_view("NoSuchTool", b'{"a":1}') == GenericView({"a": 1})


def test_tool_inputs_are_views() -> None:
    grep = input_view("Grep", b'{"pattern":"x","-A":2,"-n":true,"head_limit":"ten"}')
    assert (grep.pattern, grep.after, grep.line_numbers, grep.head_limit) == ("x", 2, True, None)
    assert input_view("mcp__git__log", b'{"n":3}') == GenericView({"n": 3})


def test_names_are_made_python() -> None:
    names = {name for kind in VIEWS for name in VIEWS[kind].__struct_fields__}
    assert all(name.isidentifier() and name == name.lower() for name in names)
    assert {"tool_use_id", "source_tool_assistant_uuid", "total_api_duration"} <= names
    found = view("system/microcompact_boundary", microcompactMetadata={"clearedAttachmentUUIDs": ["u"]})
    assert found.microcompact_metadata.cleared_attachment_uuids == ["u"]


@given(kind=st.sampled_from(sorted(VIEWS)), data=st.data())
def test_no_value_in_any_field_raises(kind: str, data: st.DataObject) -> None:
    shape = VIEWS[kind]
    names = st.sampled_from(shape.__struct_encode_fields__)
    fields = data.draw(st.dictionaries(names, JSON, max_size=4))
    line = as_bytes({"attachment": fields, "data": fields, **fields})
    assert isinstance(view_of(kind, line), shape)


@pytest.mark.corpus
def test_every_field_of_the_real_client_fits_its_view(shared: Path) -> None:
    refused: set[str] = set()
    seen = 0
    for path in (shared / "corpus" / "real-client").rglob("*.jsonl"):
        if path.name == "history.jsonl":
            continue
        for record in read_bytes(path.read_bytes()):
            if isinstance(record, Record):
                seen += 1
                refused |= {f"{record.kind}.{name}" for name in _lost(record)}
    assert seen > 1000
    assert refused == set()


def _lost(record: Record) -> set[str]:
    """Return the fields that hold something in the record and nothing in its view."""
    found, fields = record.view, record.fields
    body = fields.get("attachment") or fields.get("data") or {}
    names = dict(zip(found.__struct_encode_fields__, found.__struct_fields__, strict=True))
    held = {name for name in names if {**fields, **body}.get(name) is not None}
    hidden = {"timestamp", "agentId"} - body.keys()
    return {name for name in held - hidden if getattr(found, names[name]) is None}


def test_views_cannot_be_changed() -> None:
    view: Any = input_view("Bash", b'{"command": "ls"}')
    with pytest.raises(AttributeError):
        view.command = "rm"
