"""
Would these groups come again?
==============================

Groups of features are found from one table. ``stability`` fits the model to many halves of the
samples, and tells which groups come again and which features waver.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

import clustruct as cs

X, y = load_diabetes(return_X_y=True, as_frame=True)
X = StandardScaler().set_output(transform="pandas").fit_transform(X)
model = cs.FeatureClusterRegressor(4, random_state=0).fit(X, y)
found = cs.stability(model, X, y, n_resamples=40, random_state=0)
print(found.in_words)

# %%
# How often two features were in the same group, in the order of the groups.
order = np.argsort(model.labels_, kind="stable")
together = found.co_membership()[np.ix_(order, order)]
figure, ax = plt.subplots(figsize=(5, 4.4), layout="constrained")
shown = ax.imshow(together, cmap="Blues", vmin=0, vmax=1)
names = X.columns[order]
ax.set_xticks(range(len(names)), names, rotation=90)
ax.set_yticks(range(len(names)), names)
figure.colorbar(shown, label="share of the halves")

# %%
# The groups with their firmness: the share of the halves in which a group came again.
model.clusters()
