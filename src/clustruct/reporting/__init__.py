"""The report on a fitted model: one HTML file that needs nothing else."""
