"""The agent's tools: the protocol, the registry, shared services, and one module per tool in `builtin`."""
