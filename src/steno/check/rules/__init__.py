"""The rules by family. Each rule has an id, a severity, a meaning and a fix."""
