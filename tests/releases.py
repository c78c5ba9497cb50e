"""Releases of packages that tests tell apart."""

import sklearn

SCIKIT_LEARN = tuple(map(int, sklearn.__version__.split(".")[:2]))
