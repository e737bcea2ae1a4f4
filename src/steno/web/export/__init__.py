"""Sessions as static HTML: one self-contained file, or a directory of files.

session_pages  one session as one or several pages; a directory with an index page

Pages are rendered by the views of the explorer. A page opens from disk, makes no requests, and contains
every turn and every step.
"""
