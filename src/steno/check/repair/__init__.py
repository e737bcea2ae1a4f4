"""A broken session → a new one that resumes: stages that plan edits, and the applying of them."""
