"""What steps did, read from their records: commands, what was printed, whether tests passed."""
