"""Clustered tasks."""
