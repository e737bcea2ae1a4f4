"""Makes untrusted text safe for a terminal, a page or a CSV cell, and masks secrets."""
