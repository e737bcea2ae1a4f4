"""A strict Messages API server on loopback, for tests, demos and replays."""
