"""From arguments to solvers: validate, place, weigh."""
