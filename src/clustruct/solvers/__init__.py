"""The algorithms, and the one loop that drives them."""
