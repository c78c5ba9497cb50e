"""The sentences of the report."""
