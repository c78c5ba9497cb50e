"""Clustered features."""
