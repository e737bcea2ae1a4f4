"""How the real clients read a session back, and a session as messages the API accepts.

clients says what each client does differently; record_chain selects the records, entries turns them
into API blocks, replay puts the messages together; api_rules are the rules of the Messages API.
"""
