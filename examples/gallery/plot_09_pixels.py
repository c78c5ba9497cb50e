"""
Which pixels tell 3 from 8
==========================

The weights of a classifier of images are an image. With three distinct values it is one that can be
read.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

import clustruct as cs

digits = load_digits()
chosen = np.isin(digits.target, (3, 8))
X, X_new, y, y_new = train_test_split(
    digits.data[chosen] / 16.0, digits.target[chosen], random_state=0
)

plain = LogisticRegression().fit(X, y)
models = {"64 weights": plain}
for n_clusters in (5, 3):
    models[f"{n_clusters} weights"] = cs.FeatureClusterClassifier(n_clusters, random_state=0).fit(
        X, y
    )

# %%
# Red pixels speak for 8, blue ones for 3: the left side of the 8 is closed.
figure, axes = plt.subplots(1, 3, figsize=(9, 3.4), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    weights = np.reshape(model.coef_, (8, 8))
    ax.imshow(weights, cmap="RdBu_r", vmin=-np.abs(weights).max(), vmax=np.abs(weights).max())
    ax.set(title=f"{name}: {model.score(X_new, y_new):.1%} right", xticks=[], yticks=[])

# %%
# With ``n_nonzero`` most pixels do not count at all.
sparse = cs.FeatureClusterClassifier(2, n_nonzero=12, random_state=0).fit(X, y)
print(f"12 pixels, {sparse.n_clusters_} weights: {sparse.score(X_new, y_new):.1%} right")
figure, ax = plt.subplots(figsize=(3, 3), layout="constrained")
ax.imshow(np.reshape(sparse.coef_, (8, 8)), cmap="RdBu_r")
ax.set(xticks=[], yticks=[])
