"""File checkpoints: the state of files at each prompt, and restoring them."""
