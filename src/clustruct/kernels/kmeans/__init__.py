"""Exact k-means of numbers and the projections built on it; k-means of a few rows."""
