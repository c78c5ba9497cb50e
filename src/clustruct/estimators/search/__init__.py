"""Searches: folds, scores, rules."""
