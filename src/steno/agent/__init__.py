"""The agent: the loop, what it records, what it remembers, and what surrounds it."""
