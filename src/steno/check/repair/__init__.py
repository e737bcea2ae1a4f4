"""Repair a broken session into a new file that resumes: stages plan edits, then the edits are applied."""
