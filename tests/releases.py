"""Releases of packages that tests tell apart."""

import sklearn


def release_of(version):
    """The first two numbers of a version."""
    return tuple(map(int, version.split(".")[:2]))


SCIKIT_LEARN = release_of(sklearn.__version__)
