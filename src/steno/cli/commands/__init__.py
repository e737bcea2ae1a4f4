"""One module per command: parses options, calls the library, prints the result."""
