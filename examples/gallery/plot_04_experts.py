"""
Several experts, and a gate
===========================

If the samples follow three different rules, one regression fits none of them. Three experts
fit all of them, if the expert of each sample is known.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeClassifier

import clustruct as cs

problem = cs.datasets.make_experts(900, 3, 3, random_state=0)
model = cs.SampleClusterRegressorCV(range(1, 6), random_state=0).fit(problem.X, problem.y)
single = LinearRegression().fit(problem.X, problem.y)

print("R2 of a single regression: ", round(single.score(problem.X, problem.y), 3))
print("R2 of the weighted prediction: ", round(model.score(problem.X, problem.y), 3))
print("loss of the best of three experts: ", round(model.best_loss(problem.X, problem.y), 5))

figure, axes = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
cs.plot.experts(model, problem.X, problem.y, ax=axes[0])
cs.plot.path(model, ax=axes[1])

# %%
# Here ``x`` carries no information about the expert. If it does, a gate can learn it: now the sign
# of the first feature determines the expert.
rng = np.random.default_rng(0)
X = rng.standard_normal((900, 2))
y = np.where(X[:, 0] > 0, 2 * X[:, 1], -X[:, 1]) + 0.1 * rng.standard_normal(900)
gate = DecisionTreeClassifier(max_depth=3)
gated = cs.SampleClusterRegressor(2, gate=gate, random_state=0).fit(X, y)
print("R2 with a gate: ", round(gated.score(X, y), 3))
gated.gate_score_
