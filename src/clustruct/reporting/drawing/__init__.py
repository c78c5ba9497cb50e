"""Charts and tables of the report."""
