"""What an agent may do: rules, shell commands, paths, trust, the sandbox."""
