"""
Experts among outliers
======================

Three lines with noise of different size, and one sample in twenty that follows none of them. A
plain mixture spends an expert on the outliers. ``solver="em"`` with ``noise="own"`` gives every
expert its own noise, and outliers a share of their own.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

import clustruct as cs

rng = np.random.default_rng(3)
slopes, intercepts, noise = np.array([2.0, -1.5, 0.0]), np.array([0.0, 1.0, -3.0]), [0.1, 0.4, 0.2]
x, which = rng.uniform(-2, 2, 600), rng.integers(0, 3, 600)
y = slopes[which] * x + intercepts[which] + np.take(noise, which) * rng.standard_normal(600)
outliers = rng.random(600) < 0.05
y[outliers] = rng.uniform(-12, 12, outliers.sum())
X = x[:, None]

options = {"own noise": {"solver_options": {"noise": "own"}}, "one noise": {}}
figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
for ax, (name, option) in zip(axes, options.items(), strict=True):
    model = cs.SampleClusterRegressor(3, solver="em", random_state=0, **option).fit(X, y)
    ax.scatter(x, y, s=6, c="0.7")
    for slope, intercept in zip(model.experts_[:, 0], model.intercepts_, strict=True):
        ax.plot([-2, 2], intercept + slope * np.array([-2, 2]), linewidth=2)
    ax.set_title(name)
    print(name, np.sort(model.experts_[:, 0]).round(2), "true", np.sort(slopes))
