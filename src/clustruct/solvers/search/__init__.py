"""The search for groups of features from many starts."""
