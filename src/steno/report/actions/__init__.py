"""Actions of a session: its steps in order, with their commands, output and test results."""
