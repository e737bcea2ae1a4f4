"""What people ask of their sessions, answered from the index or straight from the files."""
