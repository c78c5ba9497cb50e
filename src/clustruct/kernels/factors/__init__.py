"""Levels of factors: look-ups, exact groups of levels, descent over factors."""
