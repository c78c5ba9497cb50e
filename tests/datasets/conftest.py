"""Real data for the tests that need it, from where the loaders find it; nothing is downloaded."""

import inspect
from functools import cache

import pytest

import clustruct as cs


@pytest.fixture(scope="session")
def fetch():
    """A function that calls a loader by name, and skips the test where its file is nowhere.

    Equal calls are made once; tests must not change what they are given.
    """

    @cache
    def call(name, **options):
        loader = getattr(cs.datasets, name)
        if "download_if_missing" in inspect.signature(loader).parameters:
            options.setdefault("download_if_missing", False)
        try:
            return loader(**options)
        except FileNotFoundError as error:
            pytest.skip(str(error))

    return call
