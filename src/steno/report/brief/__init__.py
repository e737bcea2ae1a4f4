"""A session in brief: what was asked, what was done, what was decided, what is left open.

values               a brief and its parts
turn_content         what one turn holds beside its prompt and answer
turn_reader          texts and calls of a turn, read from its records
tool_inputs          parameters of calls, with long values cut
sub_agents           sub-agents of a turn: prompt, work, report
agent_progress       what `agent_progress` records say of them
file_changes         new backups of files, by turn
context_compactions  compactions, and results removed from the context, by turn
queue_operations     what entered and left the queue, by turn
turn_positions       which turn a record belongs to
work                 deeds → files, commands, tests, sub-agents
commits              commits and pull requests, from what git and gh printed
decisions            what was agreed on, refused, and said to be decided
troubles             what failed, and what became of it
left                 what is still open at the end
gather               a session → its brief
choose               which sessions a brief is about, by the index
quote                text from sessions as quoted material, inert
mask                 a brief without its secrets
markdown             a brief for pasting
turn_markdown        what a turn holds, as Markdown
plain                a brief for programs
pack                 as much of a brief as fits into so many tokens

No model is asked, and the same session always gives the same brief.
"""

from steno.report.brief.gather import brief_of
from steno.report.brief.markdown import as_markdown
from steno.report.brief.plain import as_json
from steno.report.brief.quote import tokens_in
from steno.report.brief.values import Brief

__all__ = ["Brief", "as_json", "as_markdown", "brief_of", "tokens_in"]
