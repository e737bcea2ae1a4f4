"""State shared by all requests: app state, caches, pubsub, health monitor."""
