"""Model Context Protocol: configured servers, connections and tools."""
