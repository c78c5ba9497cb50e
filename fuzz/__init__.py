"""Fuzzing: random and hostile inputs, each checked against something independent.

``make fuzz`` runs it. `driver` draws cases and runs them in child processes; `cases` says what a
case, a target and a fault are; every other module is the subject of one target or serves them.
"""
