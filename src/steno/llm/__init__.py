"""Client of the Messages API, and a strict test server for it."""
