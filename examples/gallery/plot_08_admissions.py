"""
Did Berkeley prefer men?
========================

In 1973, 45 % of the men and 30 % of the women who applied to the six largest departments of the
graduate school were admitted. Grouped levels show what is behind it.
"""

# %%
# Applicants by department and sex: admitted and rejected (Bickel, Hammel and O'Connell, 1975).
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import clustruct as cs

counts = {
    "A": ((512, 313), (89, 19)),
    "B": ((353, 207), (17, 8)),
    "C": ((120, 205), (202, 391)),
    "D": ((138, 279), (131, 244)),
    "E": ((53, 138), (94, 299)),
    "F": ((22, 351), (24, 317)),
}
rows = [
    (department, sex, answer, number)
    for department, pairs in counts.items()
    for sex, pair in zip(("man", "woman"), pairs, strict=True)
    for answer, number in zip(("yes", "no"), pair, strict=True)
]
table = pd.DataFrame(rows, columns=["department", "sex", "admitted", "number"])
people = table.loc[table.index.repeat(table["number"])].reset_index(drop=True)
print(pd.crosstab(people["sex"], people["admitted"], normalize="index").round(2))

# %%
# Both columns are factors. The search fuses levels, and takes a factor out if all of its levels
# share a weight.
model = cs.FeatureClusterClassifierCV(rule="fewest", random_state=0)
model.fit(people[["department", "sex"]], people["admitted"])
model.clusters()

# %%
# Departments differ, in groups of a few; men and women of one department do not. Women applied
# where few are admitted.
shares = pd.crosstab(people["department"], people["sex"], normalize="columns")
rate = (people["admitted"] == "yes").groupby(people["department"]).mean()
figure, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
places = np.arange(len(rate))
for shift, sex in ((-0.2, "man"), (0.2, "woman")):
    ax.bar(places + shift, shares[sex], 0.4, label=f"applications by {sex}")
ax.plot(places, rate, "k_", markersize=28, label="share admitted")
ax.set_xticks(places, rate.index)
ax.legend()
