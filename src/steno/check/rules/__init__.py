"""The rules, one module per family. Each rule has an id, a severity, a meaning and a fix."""
