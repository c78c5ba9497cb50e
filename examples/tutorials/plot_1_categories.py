"""
A table with categories: who survived the Titanic
=================================================

On 14 April 1912 there were 2201 people on board, in three classes and the crew. The inquiry of the
same year counted the survivors by class, sex and age. Which kinds of people had the same chance?
"""

# %%
# The table
# ---------
# Fourteen kinds of people; for each how many lived and how many died.
import pandas as pd

import clustruct as cs

counts = pd.DataFrame(
    [
        ("first", "man", "adult", 57, 118), ("first", "man", "child", 5, 0),
        ("first", "woman", "adult", 140, 4), ("first", "woman", "child", 1, 0),
        ("second", "man", "adult", 14, 154), ("second", "man", "child", 11, 0),
        ("second", "woman", "adult", 80, 13), ("second", "woman", "child", 13, 0),
        ("third", "man", "adult", 75, 387), ("third", "man", "child", 13, 35),
        ("third", "woman", "adult", 76, 89), ("third", "woman", "child", 14, 17),
        ("crew", "man", "adult", 192, 670), ("crew", "woman", "adult", 20, 3),
    ],
    columns=["class", "sex", "age", "lived", "died"],
)  # fmt: skip
people = counts.melt(["class", "sex", "age"], var_name="fate", value_name="number")
people = people.loc[people.index.repeat(people["number"])].reset_index(drop=True)
X, y = people[["class", "sex", "age"]], people["fate"]
print(X.value_counts().head(4))

# %%
# A first model
# -------------
# A data frame with text goes in as it is. Each column is a *factor*: its levels are grouped among
# themselves, and no one-hot matrix is formed. The search chooses how many groups the factors need.

model = cs.FeatureClusterClassifierCV(rule="fewest", random_state=0).fit(X, y)
model.clusters()

# %%
# The second class of ``y`` is "lived", so that positive weights speak for it. The same as odds:
# ``relativity`` is what a level multiplies the odds by, compared with the level that most people
# have. Crew and second class share a value, all else equal.
model.relativities()

# %%
# Is a sum of effects enough?
# ---------------------------
# The model above adds the effects of class, sex and age. But to be a woman meant less in the third
# class. To let effects depend on each other, make one factor of the columns: a level for each kind
# of people.
kinds = X.agg(" ".join, axis=1).to_frame("kind")
joint = cs.FeatureClusterClassifierCV(rule="fewest", random_state=0).fit(kinds, y)

for name, found in {"sum of effects": model, "joint": joint}.items():
    print(f"{name}: {found.n_clusters_} groups, held-out log loss {-found.best_score_:.4f}")

# %%
# Fourteen kinds of people, in groups that had about the same chance:
joint.clusters()

# %%
# Are the groups firm?
# --------------------
# ``stability`` fits the model again to many halves of the people, and counts how often the groups
# come again. With few people of a kind, such as the children of the first class, they waver.
fixed = cs.FeatureClusterClassifier(joint.n_clusters_, random_state=0).fit(kinds, y)
print(cs.stability(fixed, kinds, y, n_resamples=20, random_state=0).in_words)

# %%
# Use it elsewhere
# ----------------
# The model as a query; ``to_python`` writes a function. :doc:`/tariffs` has a larger story of this
# kind, with exposures, ordered levels and a report.
print(joint.to_sql("people"))
