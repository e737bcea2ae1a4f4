"""One file for each page: what the address asks for, and the values that its template shows."""
