"""The read-only JSON API below `/api/v1`.

models/     every response, as types
parameters  the query parameters of each endpoint, as types
routes      the table of endpoints
openapi     the OpenAPI document, generated from the three above
responses   JSON bodies, entity tags and errors
cursors     opaque cursors of paged lists
sessions, turns, search, usage, files, health, tasks, document: the endpoints
"""
