"""What is wrong with a session, what the catalogue does not know in it, and how to fix it. Pure.

findings are what a check returns; evidence is what the rules read; rules/ has the families of rules, run by checkup;
verdict says what each client would resume; drift compares with the catalogue; repair/ plans and applies edits.
"""
