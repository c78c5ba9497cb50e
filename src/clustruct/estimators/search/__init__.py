"""One search for features, samples and tasks: folds, scores, rules, progress."""
