"""Matrices in pieces: Dask collections and mapped files."""
