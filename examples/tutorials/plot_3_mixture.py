"""
A mixture: two rules in one table
=================================

Anderson's irises: how long is the petal of a flower, given its sepal? One line through all flowers
fits none of them well. We look for several lines without telling the model which species a flower
is.
"""

# %%
# One line, or several?
# ---------------------
# ``SampleClusterRegressorCV`` fits one to four lines, the *experts*, assigns each flower to the
# line that fits it best, and chooses how many lines the data support.
import pandas as pd
from sklearn.datasets import load_iris
from sklearn.linear_model import LinearRegression, LogisticRegression

import clustruct as cs

iris = load_iris(as_frame=True)
flowers = iris.data.rename(columns=lambda name: name.removesuffix(" (cm)"))
X, y = flowers[["sepal length"]], flowers["petal length"]

single = LinearRegression().fit(X, y)
model = cs.SampleClusterRegressorCV(range(1, 5), random_state=0).fit(X, y)
print(f"R2 of a single line: {single.score(X, y):.2f}")
model.clusters()

# %%
# Two lines: one rises, the other is flat.
cs.plot.experts(model, X, y)

# %%
# How sure is the number? Below are the criteria for each; the lower the better.
cs.plot.path(model)

# %%
# What are the groups?
# --------------------
# The species were not given. Compare them with the expert of each flower:

species = iris.target_names[iris.target]
pd.crosstab(species, model.labels_, rownames=["species"], colnames=["expert"])

# %%
# Every setosa is on the flat line: its petals are short, however large the flower is. The other two
# species share the second line. That is a finding, not a failure: along the sepal they follow one
# rule.
#
# One prediction for a new flower
# -------------------------------
# The expert of a new flower is not known, as it was found from its petal. ``predict_experts``
# returns both predictions, ``predict`` their mean, weighted by the shares of the experts.
new = pd.DataFrame({"sepal length": [5.0, 6.0]})
print(model.predict_experts(new).round(2))
print(model.predict(new).round(2))

# %%
# If other columns tell the expert, a *gate* learns it: any classifier of scikit-learn. The width of
# the sepal helps; ``gate_score_`` compares the loss with the gate, without it, and of the best
# expert.

both = flowers[["sepal length", "sepal width"]]
gated = cs.SampleClusterRegressor(2, gate=LogisticRegression(), random_state=0).fit(both, y)
print(f"R2 of one regression: {LinearRegression().fit(both, y).score(both, y):.3f}")
print(f"R2 of two, with a gate: {gated.score(both, y):.3f}")
gated.gate_score_
