"""The web explorer: read-only pages and a JSON API over the index and the session files.

app             routes, error pages, API endpoints
auth            request checks (host, method, origin, token) and security headers
http_server     the local server: addresses, sockets, connections, preloading
urls            URLs of all pages; path tags; numbers in URLs
templating      Jinja environment, filters, icons, static files
template_cache  compiled templates on disk
state/          app state, caches, pubsub, health monitor
routes/         request handlers, one module per page
views/          view models: session list, session page, comparison, usage, files
tool_views/     HTML inside a step, a record or a gap
render/         Markdown, code, diffs, ANSI and charts as HTML
export/         sessions as static HTML files
api/            the JSON API
templates/      Jinja templates
static/         stylesheets, scripts, icons

The package does not write files, run programs or call models; import-linter enforces this. The caller
updates the index.
"""
