"""Full-text search over all sessions.

query_parser  query text → terms, exclusions and filters; no I/O
terms         a query word → the forms in which it may occur, for the index and for a text
scope         filters → the messages and parts to search
finder        `Finder(connection, texts).find(query)`; hits counted by file and grouped by session
hit_text      reads the text of hits again, matches patterns, cuts excerpts
audit         classifies every byte: searched, or the reason why not
"""
