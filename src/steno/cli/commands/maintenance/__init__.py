"""Commands that check, repair, move, archive and index session files."""
