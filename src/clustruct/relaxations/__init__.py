"""Convex relaxations: what conditional gradient minimises, and what lower bounds come from."""
