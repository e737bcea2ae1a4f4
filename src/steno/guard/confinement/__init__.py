"""Runs programs that the kernel confines: no network, no writes outside scratch, few reads."""
