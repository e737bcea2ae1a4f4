"""What was used and what it cost, as values for a page.

asked      the address → which days, split by what
figures    the few figures on top, and what is to be said of all of them
drawn      the charts
"""
