"""Files: where sessions lie, how they are read, and (later) the only writers of session bytes."""
