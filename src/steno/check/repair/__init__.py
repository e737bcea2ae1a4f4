"""Repairs a broken session into a new file that resumes: stages that plan edits, then apply them."""
