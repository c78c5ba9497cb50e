"""A loss bound to a design: value, gradient, and the best centres for given groups."""
