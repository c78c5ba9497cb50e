"""
Compressing models
==================

The weights of a neural network and of a regression on words, replaced by codes of 4, 3 and 2 bits
with the best possible codebook, against k-means++ and evenly spaced values.
"""

# %%
# A network that reads handwritten digits. Each row of a weight matrix, the weights into one unit,
# gets a codebook of its own.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import clustruct as cs

X, y = load_digits(return_X_y=True)
train, test, y_train, y_test = train_test_split(X / 16.0, y, random_state=0)
network = MLPClassifier((32,), alpha=1e-3, max_iter=1000, random_state=0).fit(train, y_train)
weights = [layer.copy() for layer in network.coefs_]


def exact(rows, bits):
    return cs.quantize(rows, bits).dequantize()


def kmeans_plus_plus(rows, bits):
    found = []
    for row in rows:
        model = KMeans(min(2**bits, len(np.unique(row))), random_state=0).fit(row[:, None])
        found.append(model.cluster_centers_[model.labels_, 0])
    return np.array(found)


def even_grid(rows, bits):
    least, width = rows.min(axis=1, keepdims=True), np.ptp(rows, axis=1, keepdims=True)
    steps = 2**bits - 1
    return least + np.round((rows - least) / width * steps) / steps * width


METHODS = {"exact": exact, "k-means++": kmeans_plus_plus, "even grid": even_grid}
accuracy, errors = {}, {}
for name, method in METHODS.items():
    for bits in (4, 3, 2):
        network.coefs_ = [method(layer.T, bits).T for layer in weights]
        accuracy[name, bits] = network.score(test, y_test)
        parts = zip(network.coefs_, weights, strict=True)
        errors[name, bits] = sum(np.square(a - b).sum() for a, b in parts)
network.coefs_ = weights
print(f"accuracy with all weights: {network.score(test, y_test):.3f}")
for (name, bits), score in accuracy.items():
    print(f"{name:>10}, {bits} bits: accuracy {score:.3f}, error {errors[name, bits]:.3f}")

# %%
# The squared error of the weights is the least possible for the exact codebooks. The accuracy
# follows it only roughly: it depends on which weights are off, not only on how far.
figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for name in METHODS:
    axes[0].plot((4, 3, 2), [errors[name, bits] for bits in (4, 3, 2)], "o-", label=name)
    axes[1].plot((4, 3, 2), [accuracy[name, bits] for bits in (4, 3, 2)], "o-", label=name)
axes[0].set(xlabel="bits", ylabel="squared error of the weights", yscale="log")
axes[1].axhline(network.score(test, y_test), color="0.6", zorder=0)
axes[1].set(xlabel="bits", ylabel="accuracy")
axes[0].legend()

# %%
# Weights of the entries say which of them matter. Here the mean square of a unit's input stands for
# how much a weight from it moves the output; the closed-form error is weighted in the same way.
inputs = np.square(train).mean(axis=0)
plain = cs.quantize(weights[0].T, 2)
weighted = cs.quantize(weights[0].T, 2, sample_weight=inputs + 1e-6)
moved = [
    np.square(train @ (small.dequantize().T - weights[0])).mean() for small in (plain, weighted)
]
print(f"mean squared change of the first layer's output: {moved[0]:.4f}, weighted {moved[1]:.4f}")
print(f"bytes: {weights[0].nbytes} before, {plain.n_bytes} after")

# %%
# A regression has one vector of weights, and one codebook for all of them. These are simulated; the
# movie reviews of `clustruct.datasets.fetch_movie_reviews` go the same way.
problem = cs.datasets.make_clustered_features(600, 200, 12, noise=5.0, random_state=0)
coef = np.linalg.lstsq(problem.X[:400], problem.y[:400], rcond=None)[0]
held_out = slice(400, None)


def score(values):
    """Share of the variance of held-out targets that is explained."""
    left = problem.y[held_out] - problem.X[held_out] @ values
    return 1.0 - left.var() / problem.y[held_out].var()


print(f"all values: {score(coef):.4f}")
for groups, bits in zip(cs.kmeans_1d(coef, (4, 8, 16)), (2, 3, 4), strict=True):
    rest = {name: score(METHODS[name](coef[None], bits)[0]) for name in ("k-means++", "even grid")}
    others = ", ".join(f"{name} {value:.4f}" for name, value in rest.items())
    print(f"{bits} bits: {score(groups.centers[groups.labels]):.4f} ({others})")
