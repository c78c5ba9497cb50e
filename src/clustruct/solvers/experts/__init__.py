"""Solvers for experts."""
