"""Actions of a session: its steps in order, with commands, output and test results."""
