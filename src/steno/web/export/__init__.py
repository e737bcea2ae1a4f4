"""Sessions as pages that need no server: one file that holds all it needs, or a folder of them.

links     where things are, in files
frame     what every page has: its styles, its script, what it may load
pages     a session as one page, or as several where it is long
folder    many sessions, and the page that lists them

They are drawn as the explorer draws them. A page opens from a disk, asks for nothing, and shows
every turn and what is inside of every step.
"""
