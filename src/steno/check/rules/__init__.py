"""The rules, one file per family. Each is small, pure, and says what it means and what to do."""
