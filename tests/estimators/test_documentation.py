"""Parameters, attributes and arguments of estimators are described once, in tables."""

import inspect

import pytest
from numpydoc.docscrape import NumpyDocString

import clustruct as cs
from clustruct import _docs
from clustruct.estimators import descriptions

MODELS = [
    getattr(cs, f"{use}Cluster{kind}{search}")
    for use in ("Feature", "Sample", "Task")
    for kind in ("Regressor", "Classifier")
    for search in ("", "CV")
]


def section(thing, name):
    return {entry.name: entry for entry in NumpyDocString(inspect.getdoc(thing))[name]}


@pytest.mark.parametrize("model", MODELS)
def test_every_parameter_is_described_with_its_default(model):
    parameters = inspect.signature(model).parameters
    described = section(model, "Parameters")
    assert list(described) == list(parameters)
    for name, entry in described.items():
        assert "default=" in entry.type, name
        assert entry.desc, name


@pytest.mark.parametrize("model", MODELS)
def test_arguments_of_fit_are_described(model):
    arguments = [name for name in inspect.signature(model.fit).parameters if name != "self"]
    assert list(section(model.fit, "Parameters")) == arguments
    assert "Itself." in inspect.getdoc(model.fit)


def test_every_entry_of_the_tables_is_used():
    things = list(MODELS)
    things += [getattr(model, name) for model in MODELS for name in dir(model)]
    texts = "".join(str(inspect.getdoc(thing)) for thing in things)
    for table in filter(str.isupper, vars(descriptions)):
        for name, (_, text) in _docs._read(getattr(descriptions, table)).items():
            assert text.splitlines()[0] in texts, f"{table}: {name}"


def test_what_a_docstring_says_itself_is_kept_and_ordered():
    @_docs.documented(["b : int\n    From the table.\nlow : float\n    Never shown."])
    def function(a, b=3, low=0, high=1):
        """Add.

        Parameters
        ----------
        low, high : float
            Limits.
        a : int
            Its own.

        Returns
        -------
        int
            The sum.
        """

    described = section(function, "Parameters")
    assert list(described) == ["a", "b", "low, high"]
    assert described["b"].type == "int, default=3"
