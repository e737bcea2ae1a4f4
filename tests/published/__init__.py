"""The five published descriptions of the format, item by item."""
