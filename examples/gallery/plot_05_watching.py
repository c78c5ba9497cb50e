"""
Watching a fit, and ending it early
===================================

A callback is called after every iteration, and can end the fit by returning True.
"""

# %%
import clustruct as cs

problem = cs.datasets.make_clustered_features(200, 120, 6, noise=1.0, random_state=0)
steps = []


def watch(step):
    """Keep each iteration, and stop after ten."""
    steps.append(step)
    return len(steps) == 10


options = {"solver": "pg", "init": "zeros", "solver_options": {"refit": False}, "max_iter": 2000}
short = cs.FeatureClusterRegressor(6, **options, callback=watch).fit(problem.X, problem.y)
whole = cs.FeatureClusterRegressor(6, **options).fit(problem.X, problem.y)
print(short.status_.message)
print(whole.status_.message)

# %%
# The objective of every iteration, and the lower bound over all groupings.
cs.plot.convergence(whole)

# %%
# The same in words.
whole.certificate_
