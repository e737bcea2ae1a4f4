"""One session as values for a page: what templates draw, with nothing left to think about.

tale      a conversation with its branches in place, its sub-agents' colours, what things cost
head      what it is, where, when, and how it stands
turns     a turn: prompt, steps, answer, figures; a seam; an abandoned branch
steps     a step as one line
window    which turns are drawn in full, and which as one row
find      where words occur in it, in what was abandoned, and in its sub-agents
finding   which of these places is shown
outline   every turn in a line
map       the whole of it in one narrow picture
panel     where the context went, files, commands, usage
findings  what is wrong with its file
glimpse   the last turns of a very long session, before the whole of it was read
"""
