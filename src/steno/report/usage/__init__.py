"""Tokens and what they cost: counted once, priced by the day, and open down to the line."""
