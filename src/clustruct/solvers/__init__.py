"""The algorithms that fit clustered weights."""
