"""
Thirty weights become five
==========================

A ridge regression gives each of thirty measurements of a tumour its own weight. With grouped
features, five weights predict as well, and are easy to read.
"""

# %%
# The data come with scikit-learn. Features are scaled, so that sharing a weight makes sense.
import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import Ridge
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import clustruct as cs

data = load_breast_cancer(as_frame=True)
X = StandardScaler().set_output(transform="pandas").fit_transform(data.data)
X_fit, X_new, y_fit, y_new = train_test_split(X, data.target, random_state=0)

ridge = Ridge(10.0).fit(X_fit, y_fit)
model = cs.FeatureClusterRegressor(5, alpha=10.0 / len(y_fit), random_state=0).fit(X_fit, y_fit)

print(f"R2 on new tumours: ridge {ridge.score(X_new, y_new):.3f}")
print(f"with five weights: {model.score(X_new, y_new):.3f}")
print(model.certificate_.in_words)

# %%
# Dots are the weights of the ridge, bars the shared weights. Groups are not simply neighbours
# among the weights of the ridge: correlated features can exchange weight at no cost, and the
# search makes use of it.
figure, ax = plt.subplots(figsize=(8, 7), layout="constrained")
cs.plot.weights(model, reference=ridge.coef_, ax=ax)

# %%
# The groups as a table.
model.clusters()
