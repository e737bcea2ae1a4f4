"""Model Context Protocol: configured servers, connections to them, and their tools."""
