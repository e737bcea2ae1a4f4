"""Session checks: findings, catalogue drift, resume verdicts and repairs. Pure.

findings defines rules and findings; evidence holds the data that rules read; rules/ contains the rule families; checkup
runs them; verdict describes what each client version resumes; drift compares records with the catalogue; repair/ plans
and applies edits.
"""
