"""The Messages API: what is asked and answered, a client for it, and a strict server."""
