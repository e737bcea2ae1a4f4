"""Coverage-guided fuzzing: six targets, and the inputs that once broke one of them."""
