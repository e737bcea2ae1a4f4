"""A session in brief: what was asked, what was done, what was decided, what is left open.

values     a brief and its parts
deeds      the steps of a session and its sub-agents in order, and what stands behind them
shell      what a shell command is: a test, a commit, a mere look
work       deeds → files, commands, tests, sub-agents
commits    commits and pull requests, from what git and gh printed
decisions  what was agreed on, refused, and said to be decided
troubles   what failed, and what became of it
left       what is still open at the end
gather     a session → its brief
choose     which sessions a brief is about, by the index
quote      text from sessions as quoted material, inert
mask       a brief without its secrets
markdown   a brief for pasting
plain      a brief for programs
pack       as much of a brief as fits into so many tokens

No model is asked, and the same session always gives the same brief.
"""

from steno.report.brief.gather import brief_of
from steno.report.brief.markdown import as_markdown
from steno.report.brief.plain import as_json
from steno.report.brief.quote import tokens_in
from steno.report.brief.values import Brief

__all__ = ["Brief", "as_json", "as_markdown", "brief_of", "tokens_in"]
