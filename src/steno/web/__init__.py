"""The explorer: a local web page over the index and the sessions. It reads, and nothing else.

gate       who may look: host, method, origin, token; what a page may load
app        the table of routes, and what an error looks like
ward       looks after the sessions in the background: damage, risk, drift
wire       requests as they come in: what is no HTTP ends here
house      what the pages share: the index, opened sessions, prices, news of changes
links      the address of everything; the HTML export has its own
numbers    the numbers that addresses name
paint      templates, and the words and figures that they use
kept       answers that hold until the index changes
warm       the pages that are opened first, made ahead
listed/    the list of sessions, and what was found in them, as values for a page
spend/     what was used as values for a page
render/    Markdown, code, diffs, colours of a terminal, charts: text in, safe HTML out
bodies/    what is inside a step, a record, a gap: one file for each family of tools
story/     one session as values for a page: turns, steps, what is in a step
files/     what agents did to files as values for a page: tree, timeline, versions
pair/      two sessions as values for a page: what differs, both paths, what to choose from
export/    sessions as pages that need no server; others write them
pages/     one file each: what the address asks for → the page
serve      the loopback server around it all

Nothing here writes, runs a program or talks to a model; the linter sees to it. What keeps the index
fresh is given to it from outside.
"""
