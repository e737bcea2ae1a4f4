"""Commands: one module each, which parses the options, calls the library and prints the result."""
