"""The campaign: every promise tried at a size that fits the time given, with the figures kept."""
