"""From tables to samples."""
