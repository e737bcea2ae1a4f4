"""Brief of a session: prompts, work, decisions and open items.

brief_document   data model of a brief
brief_builder    builds briefs, finds open items, and selects sessions
turn_reader      texts, calls, backups, compactions, queue operations and decisions of each turn
work_summary     tools, files, commands, tests, sub-agents, commits, failures
brief_reduction  cuts long inputs, masks secrets, fits a token budget
brief_markdown   a brief as Markdown
brief_json       a brief as JSON

Building a brief calls no model and is deterministic.
"""

from steno.report.brief.brief_builder import build_brief
from steno.report.brief.brief_document import Brief
from steno.report.brief.brief_json import as_json
from steno.report.brief.brief_markdown import as_markdown
from steno.sanitize.markdown import estimate_tokens

__all__ = ["Brief", "as_json", "as_markdown", "build_brief", "estimate_tokens"]
