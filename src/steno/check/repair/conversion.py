"""Conversion: a file in a published dialect becomes one that the real client resumes."""

from typing import Final

from steno.check.repair.edits import Drafts
from steno.format.dialects.converted import NO_MODEL
from steno.format.dialects.detection import is_converted
from steno.format.values import as_object

__all__ = ["convert"]

_FINDING: Final = "fields.dialect"


def convert(drafts: Drafts) -> None:
    """Write every record as the real client does; set aside what is deleted or not active."""
    source = drafts.transcript.source
    if not is_converted(source):
        return
    hidden = source.hidden()
    for node in drafts.transcript.nodes:
        if node.type == "deleted":
            drafts.set_aside(node, _FINDING, "set aside a record that is deleted", unlink=False)
        elif node.uuid in hidden:
            what = "set aside a record of a branch that is not active"
            drafts.set_aside(node, _FINDING, what, unlink=False)
        elif source.inserted(node.offset):
            drafts.rewrite(node, _FINDING, "add what the real client writes here")
        elif not source.changed(node.offset):
            continue
        elif source.is_client(node.offset):
            what = "hang it on what stands before it now"
            drafts.rewrite(node, _FINDING, what)
        elif node.type == "assistant" and not node.model:
            message = as_object(drafts.fields(node).get("message")) or {}
            fields = {"message": {"model": NO_MODEL, **message}}
            drafts.change(node, _FINDING, "write it as the real client does", fields)
        elif node.uuid:
            drafts.rewrite(node, _FINDING, "write it as the real client does")
