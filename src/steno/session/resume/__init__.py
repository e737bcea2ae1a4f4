"""How Claude Code versions read a session, and conversion of a session to valid API messages.

clients describes the differences between versions; record_chain selects records; entries converts them to API blocks;
replay assembles messages; api_rules contains the rules of the Messages API.
"""
