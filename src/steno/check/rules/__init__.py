"""The rules by family. Each rule has an ID, a severity, a title and a hint."""
