"""
A text: what the words of a sentence tell
=========================================

Every parameter of scikit-learn is described in a sentence or two. Can the words alone tell whether
the parameter is a whole number or a decimal one? With a weight for each of hundreds of words, a
model predicts that well and says little. With a handful of weights it can be read.
"""

# %%
# The texts
# ---------
# They are on every machine that has scikit-learn: the docstrings of its estimators. Descriptions
# that several estimators share count once. With another release the figures may differ a little.
import re

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.utils import all_estimators

import clustruct as cs

kinds = {}
for _, estimator in all_estimators():
    text = estimator.__doc__.partition("Parameters\n")[2].partition("Attributes\n")[0]
    for head, body in re.findall(r"^    (\w+ ?: .+)\n((?:        .*\n|\n)+)", text, flags=re.M):
        named = set(re.findall(r"\b(int|float|bool|str|dict|callable)\b", head))
        if named in ({"int"}, {"float"}):
            kinds[" ".join(body.split())] = named.pop()
texts, y = np.array(list(kinds)), np.array(list(kinds.values()))

print(f"{(y == 'int').sum()} whole numbers and {(y == 'float').sum()} decimal ones, for example:")
for text, kind in list(kinds.items())[:3]:
    print(f"  {kind}: {text[:72]}...")

# %%
# Words as columns
# ----------------
# A column for each word that three descriptions use: 1 if the word is in the text. All columns have
# the same scale, so that sharing a weight makes sense, and the matrix stays sparse.

train, test, y_train, y_test = train_test_split(texts, y, test_size=0.3, random_state=0)
words = CountVectorizer(min_df=3, binary=True, token_pattern=r"[a-z]{2,}", dtype=float)
X_train, X_test = words.fit_transform(train), words.transform(test)
print(X_train.shape)

# %%
# A few weights for hundreds of words
# -----------------------------------
# The search tries two to seven groups of words, and takes the fewest that are not clearly worse.
# Logistic regression has a weight for every word, and its strength by cross-validation as well.

model = cs.FeatureClusterClassifierCV(
    range(2, 8), alphas=np.logspace(-3, -1, 5), rule="fewest", random_state=0
).fit(X_train, y_train)
rival = GridSearchCV(LogisticRegression(max_iter=1000), {"C": np.logspace(-2, 2, 9)})
rival.fit(X_train, y_train)

print(f"{model.n_clusters_} weights:        {model.score(X_test, y_test):.3f} right")
print(f"{X_train.shape[1]} weights:      {rival.score(X_test, y_test):.3f}")
print(f"the more frequent kind: {max((y_test == kind).mean() for kind in ('int', 'float')):.3f}")

# %%
# Read it
# -------
# Groups go from words that speak for decimal numbers to those that speak for whole ones. In each
# group the most frequent words come first.
names, often = words.get_feature_names_out(), np.asarray(X_train.sum(axis=0)).ravel()
for group, value in enumerate(model.cluster_values_):
    mine = np.flatnonzero(model.labels_ == group)
    first = names[mine[np.argsort(-often[mine])]][:12]
    print(f"{value:+.2f}  {mine.size:3d} words: {', '.join(first)}")

# %%
# The score against the number of groups: how much do further ones gain?
cs.plot.path(model)

# %%
# Fewer words
# -----------
# ``n_nonzero`` lets only so many words count at all; the others have the weight zero.
short = cs.FeatureClusterClassifier(3, n_nonzero=20, alpha=model.best_params_["alpha"])
short.fit(X_train, y_train)
print(f"20 words, {short.n_clusters_} weights: {short.score(X_test, y_test):.3f} right")
for group, value in enumerate(short.cluster_values_):
    print(f"{value:+.2f}  {', '.join(names[short.labels_ == group])}")
