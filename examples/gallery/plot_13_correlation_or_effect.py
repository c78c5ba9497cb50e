"""
Groups by correlation, or by effect?
====================================

``FeatureAgglomeration`` puts correlated features together, and does not look at the target.
``FeatureClusterRegressor`` puts features together that have the same effect on it.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import FeatureAgglomeration
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import clustruct as cs

X, y = load_diabetes(return_X_y=True)
numbers = range(1, 9)
pipelines = {
    "by correlation": lambda q: (FeatureAgglomeration(q), Ridge(1.0)),
    "by effect": lambda q: (
        cs.FeatureClusterRegressor(q, alpha=1e-3, solver="pg", random_state=0),
    ),
}
figure, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
for name, steps in pipelines.items():
    scores = [
        cross_val_score(make_pipeline(StandardScaler(), *steps(q)), X, y, scoring="r2").mean()
        for q in numbers
    ]
    ax.plot(numbers, scores, "o-", label=name)
ridge = cross_val_score(make_pipeline(StandardScaler(), Ridge(1.0)), X, y, scoring="r2").mean()
ax.axhline(ridge, color="0.6", zorder=0, label="ridge, 10 weights")
ax.set(xlabel="number of groups", ylabel="cross-validated R2")
ax.legend()
print(f"ridge: {ridge:.3f}")

# %%
# The groups are not the same: how many features of each group by correlation (rows) are in each
# group by effect (columns).
scaled = StandardScaler().fit_transform(X)
rows = FeatureAgglomeration(4).fit(scaled).labels_
columns = (
    cs.FeatureClusterRegressor(4, alpha=1e-3, solver="pg", random_state=0).fit(scaled, y).labels_
)
table = np.zeros((4, 4), dtype=int)
np.add.at(table, (rows, columns), 1)
print(table)
