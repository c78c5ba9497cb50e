"""scikit-learn's face: estimators that validate, choose, solve and copy."""
