"""Searches for the best partition of sorted numbers into groups."""
