"""View models of the pages, for templates.

session_list     session list: parameters, rows, sections, filters with counts
session_params   parameters of a session page URL
session_view     one session with branches, sub-agents, costs; its header
opened_session   opens a session for a request; tail preview of large files
step_view        steps and compactions as HTML
turn_view        turns, abandoned branches, folded turns; which turns are rendered
find_in_session  text search in one session
file_findings    findings of `steno check` for one session
session_panel    side panel: context, outline, files, commands, usage
session_charts   SVG: session map, context bar, context growth
comparison       comparison of two sessions
file_pages       file tree, versions and their cache
usage_figures    usage parameters, figures and tables
usage_charts     usage charts
"""
