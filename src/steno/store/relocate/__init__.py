"""Moves the sessions of a project to another directory or machine, and back.

plan       the affected files, path rewriting, and the planned steps; nothing is changed
execution  executes a plan, recorded in a receipt so that it can be resumed or undone
transfer   packs a project's sessions into one file for another machine, and unpacks it
"""
