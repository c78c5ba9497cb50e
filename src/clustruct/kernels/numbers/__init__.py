"""Sorted numbers: their order, the cost of their intervals, labels from thresholds."""
