"""The model and its rivals on held-out samples."""
