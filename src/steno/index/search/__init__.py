"""Finding words again: in whose mouth, in which session, at which byte.

language   a query as people type it → what is wanted, what is not, and filters; pure
terms      a word → how it may stand in a text; to the index, and back in the text itself
scope      filters → which messages and which parts of them are looked at
finder     the door: `Finder(connection, texts).find(query)`
survey     the same, counted: how much is in which file, and the first ones
grouping   hits → the sessions they are in
reader     a hit → the words of its record, from the file or the archive
excerpts   words → the stretch around the match, with the exact places
grep       a pattern over texts, with a limit on time
audit      every byte of every file: searched, or why not
"""
