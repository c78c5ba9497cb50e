"""Inner loops of linear models: features, samples, tasks and classes."""
