"""From files to tables."""
