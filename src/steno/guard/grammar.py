"""The kinds of nodes in a tree of bash, as the parser names them, and which of them are judged."""

import re
from typing import Final

from steno.guard.words import names

__all__ = [
    "APART",
    "COMPARISONS",
    "HOLDERS",
    "LEAVES",
    "ODD_BACKQUOTES",
    "RESERVED",
    "TESTS",
    "WORDS",
]

# Nodes that only hold others.
HOLDERS: Final = frozenset(
    {
        "program",
        "list",
        "pipeline",
        "subshell",
        "compound_statement",
        "redirected_statement",
        "negated_command",
        "if_statement",
        "elif_clause",
        "else_clause",
        "do_group",
        "variable_assignments",
        "case_statement",
        "case_item",
    }
)
ODD_BACKQUOTES: Final = re.compile(rb"`.*[\\#'\"]", re.DOTALL)
LEAVES: Final = frozenset(
    {
        *(";", ";;", "&&", "||", "|", "|&", "&", "(", ")", "{", "}", "!"),
        *("if", "then", "elif", "else", "fi", "while", "until", "for", "in", "do", "done"),
        *("case", "esac", "function", "select", "$(", "`", "<(", ">("),
    }
)
# What bash reads as part of its grammar: no program goes by these names.
RESERVED: Final = names(
    "if then elif else fi for while until do done case esac select function coproc { } [[ ]] ! in"
)
# What is only itself where blanks follow.
APART: Final = frozenset(
    {*("{", "!", "if", "then", "elif", "else", "while", "until", "for", "in", "do", "case")}
)
WORDS: Final = frozenset(
    {
        *("word", "string", "raw_string", "number", "concatenation", "simple_expansion"),
        *("expansion", "command_substitution", "process_substitution", "arithmetic_expansion"),
        *("ansi_c_string", "translated_string", "brace_expression", "extglob_pattern"),
        *("array", "string_content", "regex", "variable_name"),
    }
)
TESTS: Final = names("-f -d -e -r -w -x -s -z -n -L -h -nt -ot -ef")
COMPARISONS: Final = frozenset({"=", "==", "!=", "!", "&&", "||", "[", "]", "[[", "]]"})
