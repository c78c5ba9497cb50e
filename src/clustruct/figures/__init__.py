"""Figures of fitted models: described once as marks on axes, drawn by matplotlib or as SVG."""
