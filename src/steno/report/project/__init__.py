"""Everything that is known of a project: from the index, the config folder, and its own folder.

figures  what the index knows: sums, weeks, branches, pull requests, files
config   what the client's config folder keeps of it
own      what lies in the project's folder itself, where that is still there
gather   all of it together
"""

from steno.report.project.gather import Project, gather

__all__ = ["Project", "gather"]
