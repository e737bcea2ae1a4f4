"""What happened, for people: turns and their steps, sub-agents, branches, titles, status, usage."""
