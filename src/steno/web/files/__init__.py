"""What the pages about files share.

shelf      what is known of all files and of one, kept while the index stays the same
tree       paths → folders, with one way down them open
panel      one version, or what lies between two, in full
"""
