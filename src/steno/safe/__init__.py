"""Every sink for untrusted text. Session text reaches a terminal, page or cell only through here."""
