"""
Tasks: twenty regressions from sixty tumours
============================================

The Wisconsin table has ten measurements of the cells of each tumour, and for each of them the mean,
the standard error and the worst value. Can a few of the means tell the other twenty numbers? That
is a regression for each of them, and with only sixty tumours they had better learn from each other.
"""

# %%
# Twenty targets
# --------------
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split

import clustruct as cs

table = load_breast_cancer(as_frame=True).data
table = (table - table.mean()) / table.std()
inputs = ["mean radius", "mean texture", "mean compactness", "mean smoothness"]
targets = [name for name in table if not name.startswith("mean")]
X, X_new, Y, Y_new = train_test_split(table[inputs], table[targets], train_size=60, random_state=0)

# %%
# Groups of tasks
# ---------------
# Each column of ``Y`` is a task with four weights. The search decides how many groups of tasks
# there are, and how near the weights of a task are to the centroid of its group.
model = cs.TaskClusterRegressorCV(range(1, 6), random_state=0).fit(X, Y)
model.clusters()

# %%
# One group holds what measures the shape of the cells, the other their size and surface, and the
# centroids say why: the first follows compactness, the second follows all four a little.

pd.DataFrame(model.centroids_, columns=inputs).round(2)

# %%
# The map of tasks: their weights, in the plane in which these differ most.
cs.plot.tasks(model)

# %%
# Does it pay?
# ------------
# Each regression on its own, with the ridge by cross-validation, on the same sixty tumours;
# explained variance of the other 509, averaged over the twenty targets.
alone = np.column_stack(
    [RidgeCV(np.logspace(-2, 2, 9)).fit(X, Y[name]).predict(X_new) for name in targets]
)
print(f"separate regressions: {r2_score(Y_new, alone):.3f}")
print(f"in groups:            {r2_score(Y_new, model.predict(X_new)):.3f}")

# %%
# A single split says little. Over five more, with forty tumours each:
gains = []
for seed in range(1, 6):
    X_few, X_rest, Y_few, Y_rest = train_test_split(
        table[inputs], table[targets], train_size=40, random_state=seed
    )
    ridges = [RidgeCV(np.logspace(-2, 2, 9)).fit(X_few, Y_few[name]) for name in targets]
    alone = np.column_stack([ridge.predict(X_rest) for ridge in ridges])
    found = cs.TaskClusterRegressorCV(range(1, 4), random_state=0).fit(X_few, Y_few)
    gains.append(r2_score(Y_rest, found.predict(X_rest)) - r2_score(Y_rest, alone))
print("gain in R2:", np.round(gains, 3), "mean", np.mean(gains).round(3))

# %%
# The gain is small here, and not there on every split. What groups add is a model to read.
#
# A new task
# ----------
# ``adapt`` places a further task in the group that fits it, and leaves the others as they are: one
# of the means that was not used, from fifteen tumours.
name = "mean concavity"
new_task = table.loc[X.index[:15], name]
more = model.adapt(X[:15], new_task, tasks=[name] * 15)
predicted = more.predict(X_new, tasks=[name] * len(X_new))
print(f"group {more.labels_[-1]}, R2 {r2_score(table.loc[X_new.index, name], predicted):.3f}")
