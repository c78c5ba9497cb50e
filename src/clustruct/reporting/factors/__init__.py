"""Rating factors in the report: levels with their exposure, relativities, and held-out means."""
