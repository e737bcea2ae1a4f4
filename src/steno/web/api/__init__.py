"""The read-only JSON API below `/api/v1`.

schemas     response types
parameters  query parameters as types, cursors, shared filters
openapi     table of endpoints and the OpenAPI document generated from it
responses   JSON bodies, ETags, errors
session_endpoints, task_endpoints, search_endpoint, usage_endpoint, file_endpoints,
health_endpoints: the handlers
"""
