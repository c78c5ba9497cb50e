"""Matrices of the host, dense and sparse."""
