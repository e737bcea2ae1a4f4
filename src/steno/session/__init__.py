"""Many records → one session.

nodes        a record reduced to what the graph needs
transcript   one file: its nodes, its gaps, a way back to its bytes
session      the questions people ask
resume/      what each client would send on resume; messages the API accepts
story/       turns, steps, sub-agents, branches, compactions, titles, status, usage
"""
