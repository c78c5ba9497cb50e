"""Solvers for clustered tasks."""
