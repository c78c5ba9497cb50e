"""What the project says about itself agrees: versions, make targets, workflows."""

import re
from pathlib import Path

import pytest

import clustruct as cs

PROJECT = Path(__file__).parent.parent
TARGETS = set(
    re.search(r"^\.PHONY: ((?:.*\\\n)*.*)$", (PROJECT / "Makefile").read_text(), flags=re.M)[1]
    .replace("\\\n", " ")
    .split()
)
# Steps of other targets, which nobody calls by themselves.
INTERNAL = {"browser", "sanitized-kernels"}


def text_of(name):
    return (PROJECT / name).read_text(encoding="utf-8")


def workflows():
    return sorted((PROJECT / ".github" / "workflows").glob("*.yml"))


def test_released_version_is_the_same_everywhere():
    released = re.search(r"^## \[([\d.]+)\] - (\S+)$", text_of("CHANGELOG.md"), flags=re.M)
    citation = text_of("CITATION.cff")
    assert f"\nversion: {released[1]}\n" in citation
    assert f"\ndate-released: {released[2]}\n" in citation
    if "dev" not in cs.__version__:
        assert cs.__version__ == released[1]


def test_changelog_has_room_for_what_comes():
    sections = re.findall(r"^## (.*)$", text_of("CHANGELOG.md"), flags=re.M)
    assert sections[0] == "[Unreleased]"


@pytest.mark.parametrize("target", sorted(TARGETS - INTERNAL - {"help", "demo"}))
def test_make_targets_are_explained(target):
    assert re.search(rf"`(\w+=\S+ )?make {target}\b", text_of("CONTRIBUTING.md"))
    assert re.search(rf"make {target}\b", text_of("Makefile").partition("help:")[2])


@pytest.mark.parametrize("path", workflows(), ids=lambda path: path.stem)
def test_workflows_run_make_targets_only(path):
    yaml = pytest.importorskip("yaml")
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        assert "timeout-minutes" in job, name
        for step in job["steps"]:
            if "uses" in step:
                assert re.search(r"@(release/)?v\d+$", step["uses"]), step["uses"]
            else:
                command, target, *arguments = step["run"].split()
                assert (command, target in TARGETS) == ("make", True), step["run"]
                assert all(re.match(r"[A-Z]+=", one) for one in arguments), step["run"]
