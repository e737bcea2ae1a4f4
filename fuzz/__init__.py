"""Coverage-guided fuzzing: six targets, and the inputs that once made one of them fail."""
