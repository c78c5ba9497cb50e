"""The best partition of a short vector through a price for every group, with a proof."""
