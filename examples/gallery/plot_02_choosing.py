"""
How many groups?
================

Cross-validation over the number of groups and the ridge, the fewest groups that are not clearly
worse, and a path without held-out samples.
"""

# %%
# Twenty-four features in four groups, with much noise.
import matplotlib.pyplot as plt

import clustruct as cs

problem = cs.datasets.make_clustered_features(120, 24, 4, noise=6.0, random_state=1)
counts = range(1, 9)

best = cs.FeatureClusterRegressorCV(counts, alphas=(1e-1, 1e-2), random_state=0)
best.fit(problem.X, problem.y)
simple = cs.FeatureClusterRegressorCV(counts, alphas=(1e-1, 1e-2), rule="fewest", random_state=0)
simple.fit(problem.X, problem.y)
print("best score: ", best.best_params_)
print("fewest groups that are not clearly worse: ", simple.best_params_)

figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
cs.plot.path(best, ax=axes[0])
cs.plot.path(simple, ax=axes[1])

# %%
# A path has no scores, but shows where the objective stops falling. The shaded area reaches down
# to the lower bounds: no grouping into that many groups can be below it.
path = cs.feature_cluster_path(problem.X, problem.y, n_clusters=counts, alphas=(1e-1, 1e-2))
figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
cs.plot.path(path, ax=axes[0])
cs.plot.path(path, quantity="weights", ax=axes[1])
