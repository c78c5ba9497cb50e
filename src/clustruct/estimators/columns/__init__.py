"""Transformers for the columns of tables."""
