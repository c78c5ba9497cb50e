"""Clustered samples."""
