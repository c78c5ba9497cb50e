"""Convex relaxations, which conditional gradient minimises, and their lower bounds."""
