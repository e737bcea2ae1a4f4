"""Two sessions as values for a page.

path     the two paths, drawn: what is common, what is apart, what is folded away
pick     sessions to choose from
told     what was told before
"""
