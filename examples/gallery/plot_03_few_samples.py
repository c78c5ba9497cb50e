"""
Groups from fewer samples than features
=======================================

A hundred weights cannot be estimated from seventy-five samples. Five can, if one knows which
features share them; the search finds that.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import Ridge

import clustruct as cs

problem = cs.datasets.make_clustered_features(75, 100, 5, noise=0.5, random_state=0)

errors = {"ridge": np.linalg.norm(Ridge(0.1).fit(problem.X, problem.y).coef_ - problem.coef)}
for solver in ("greedy", "pg", "auto"):
    model = cs.FeatureClusterRegressor(5, alpha=1e-4, solver=solver, random_state=0)
    model.fit(problem.X, problem.y)
    errors[solver] = np.linalg.norm(model.coef_ - problem.coef)

figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.barh(list(errors), list(errors.values()), color="#0072B2")
ax.set(xlabel="distance to the true weights", title="75 samples, 100 features, 5 groups")
ax.bar_label(ax.containers[0], fmt="%.2f", padding=3)
ax.margins(x=0.15)

# %%
# Every feature is in its true group.
print((model.labels_ == problem.labels).mean())
cs.plot.weights(model, reference=problem.coef)
