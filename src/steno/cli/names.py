"""What to call a session in the next command."""

from steno.report.names import Names, argument, encodable, stem_of, text_of, title_of

__all__ = ["Names", "argument", "encodable", "stem_of", "text_of", "title_of"]
