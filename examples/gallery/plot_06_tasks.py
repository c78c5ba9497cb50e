"""
Similar tasks
=============

Sixteen schools with a few pupils each: separate regressions are poor, and one regression for all is
wrong for most. Grouped tasks share what they have in common.
"""

# %%
import numpy as np
from sklearn.linear_model import RidgeCV

import clustruct as cs

problem = cs.datasets.make_clustered_tasks(n_tasks=16, n_clusters=3, random_state=0)
X, y, tasks = problem.rows()
held_out = np.random.default_rng(0).random(y.size) < 0.3
fit, new = ~held_out, held_out

model = cs.TaskClusterRegressorCV((1, 2, 3, 4), cv=3, random_state=0)
model.fit(X[fit], y[fit], tasks=tasks[fit])
pooled = RidgeCV(np.logspace(-2, 3, 6)).fit(X[fit], y[fit])
print(f"one regression for all: R2 {pooled.score(X[new], y[new]):.3f}")
print(f"grouped tasks: R2 {model.score(X[new], y[new], tasks=tasks[new]):.3f}")

# %%
# Tasks in the plane in which their weights differ most, joined to the centroid of their group.
cs.plot.tasks(model)

# %%
# How many groups?
cs.plot.path(model)

# %%
# The groups as a table.
model.clusters()
