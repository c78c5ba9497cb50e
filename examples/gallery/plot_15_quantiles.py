"""
A band instead of a mean
========================

With ``loss="quantile"`` a model predicts a limit: two of them are a band that holds four fifths of
the patients, with three distinct weights each.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import clustruct as cs

data = load_diabetes(as_frame=True)
X = StandardScaler().set_output(transform="pandas").fit_transform(data.data)
X, X_new, y, y_new = train_test_split(X, data.target, random_state=0)

limits = {}
for level in (0.1, 0.9):
    model = cs.FeatureClusterRegressor(3, loss="quantile", quantile_level=level, random_state=0)
    limits[level] = model.fit(X, y).predict(X_new)
inside = np.mean((limits[0.1] <= y_new) & (y_new <= limits[0.9]))
print(f"{inside:.0%} of the new patients are inside")

order = np.argsort(limits[0.1] + limits[0.9])
figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
places = np.arange(order.size)
ax.fill_between(places, limits[0.1][order], limits[0.9][order], alpha=0.3, label="band")
ax.plot(places, y_new.to_numpy()[order], ".", color="0.2", label="new patients")
ax.set(xlabel="patients, by the middle of their band", ylabel="progression of the disease")
ax.legend()

# %%
# The groups of the upper limit; ``model`` is the last one that was fitted.
model.clusters()
