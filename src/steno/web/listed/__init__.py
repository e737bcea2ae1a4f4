"""The list of sessions as values for a page.

asked    what an address asks for
rows     sessions, with what stands beside each title
groups   rows under headings
facets   what the list can be narrowed by
"""
