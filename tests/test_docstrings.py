"""Every public name is documented in numpydoc's form, with examples that run; so is the README."""

import doctest
import inspect
import re
from operator import attrgetter
from pathlib import Path

import pytest
from numpydoc.docscrape import get_doc_object
from numpydoc.validate import validate

import clustruct


def documented_names():
    """The public names; of public modules, the names in them."""
    for name in clustruct.__all__:
        value = getattr(clustruct, name)
        if inspect.ismodule(value):
            yield from (f"{name}.{inner}" for inner in value.__all__)
        elif name != "__version__":
            yield name


NAMES = list(documented_names())
README = Path(__file__).parent.parent / "README.md"
# Matters of taste: where the summary starts, that there must be an extended summary or See Also.
IGNORED = {"GL01", "ES01", "SA01"}


@pytest.mark.parametrize("name", NAMES)
def test_docstring_is_valid(name):
    errors = [
        f"{code}: {text}"
        for code, text in validate(f"clustruct.{name}")["errors"]
        if code not in IGNORED and not (code == "PR01" and documents_its_fields(name))
    ]
    assert errors == []


def documents_its_fields(name):
    """Whether a result class describes under Attributes what its constructor takes."""
    value = attrgetter(name)(clustruct)
    if not inspect.isclass(value):
        return False
    described = {item.name for item in get_doc_object(value)["Attributes"]}
    return set(inspect.signature(value).parameters) <= described


@pytest.mark.parametrize("name", NAMES)
def test_examples_run(name):
    value = attrgetter(name)(clustruct)
    assert "Examples\n" in inspect.getdoc(value)
    finder = doctest.DocTestFinder(exclude_empty=True)
    tests = finder.find(value, name, globs={"clustruct": clustruct})
    assert any(test.examples for test in tests)
    report = []
    runner = doctest.DocTestRunner(
        optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS, verbose=False
    )
    for test in tests:
        runner.run(test, out=report.append)
    assert not report, "".join(report)


def test_readme_code_gives_what_it_shows(capsys):
    text = README.read_text(encoding="utf-8")
    ((code, shown),) = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", text, flags=re.S)
    exec(code, {})
    assert capsys.readouterr().out == shown
