"""Groups of rows: nearest clustered weights, and the sets that weights are kept in."""
