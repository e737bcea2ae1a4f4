"""Sessions as static HTML: one self-contained file, or a folder of files.

session_pages  one session as one or several pages; a folder with an index page

Pages are rendered by the views of the explorer. A page opens from disk, requests nothing, and
contains every turn and every step.
"""
