"""Token usage and cost: each response counted once, priced by day, and traceable to its records."""
