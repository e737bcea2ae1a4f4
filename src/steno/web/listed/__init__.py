"""The list of sessions, and what was found in them, as values for a page.

asked    what an address asks for
rows     sessions, with what stands beside each title
groups   rows under headings
found    excerpts under the sessions they stand in, and titles that have the words
facets   what the list can be narrowed by
"""
