"""The bench: what is wrong with a session, what is new in it, and how to mend it. Pure.

findings and evidence are the words; rules/ has one file per family, run by checkup; verdict says
what each client would resume; drift compares with the catalogue; repair/ plans and makes edits.
"""
