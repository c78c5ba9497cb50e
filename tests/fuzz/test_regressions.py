"""Every failure that was kept: it must not come back."""

import warnings

import pytest

from fuzz.cases import REGRESSIONS, load_target, read_failure
from fuzz.driver import in_child
from fuzz.known import reason_for

FILES = sorted(REGRESSIONS.glob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_does_not_fail_again(path):
    failure = read_failure(path)
    if reason := reason_for(failure):
        pytest.skip(f"known: {reason}")
    target = load_target(failure.target)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        target.prepare()
        assert in_child(target, failure.recipe) == ""


def test_names_say_what_they_are():
    for path in FILES:
        assert path.stem.startswith(f"{read_failure(path).target}-")
