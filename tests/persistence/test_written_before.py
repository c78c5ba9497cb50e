"""Model files that earlier versions have written: they load and answer as they did.

`written_before` holds files from before the modules of the package were moved and renamed, and
`golden` a folder for each release, written by ``make golden``.
"""

import json
from pathlib import Path

import numpy as np
import pytest
import sklearn

import clustruct as cs
from clustruct.cli import main
from clustruct.persistence import classes
from tests.persistence import golden
from tests.releases import SCIKIT_LEARN, release_of

FOLDER = Path(__file__).parent / "written_before"
NAMES = sorted(path.stem for path in FOLDER.glob("*.clustruct"))
TABLE = "command_line"
WRITTEN_WITH = "1.9.1"


def skip_if_newer(version):
    """No promise is made for files whose scikit-learn is newer than the one installed."""
    if release_of(version) > SCIKIT_LEARN:
        pytest.skip(f"written with scikit-learn {version}, and {sklearn.__version__} is installed")


@pytest.mark.parametrize("name", [name for name in NAMES if name != TABLE])
def test_model_predicts_what_it_did(name):
    skip_if_newer(WRITTEN_WITH)
    with np.load(FOLDER / "expected.npz") as expected:
        said = {key.removeprefix(f"{name}/"): expected[key] for key in expected if name in key}
    model = cs.load(FOLDER / f"{name}.clustruct")
    metadata = {"tasks": said["tasks"]} if "tasks" in said else {}
    predicted = model.predict(said["X"], **metadata)
    if predicted.dtype.kind == "f":
        np.testing.assert_allclose(predicted, said["prediction"], rtol=1e-13)
    else:
        assert predicted.tolist() == said["prediction"].tolist()
    if "best_score" in said:
        search = model[-1] if hasattr(model, "steps") else model
        assert search.best_score_ == pytest.approx(float(said["best_score"]), rel=1e-13)
        assert len(search.cv_results_["mean_test_score"]) > search.best_index_


def test_model_of_a_table_predicts_what_it_did(tmp_path, capsys):
    skip_if_newer(WRITTEN_WITH)
    out = tmp_path / "predictions.csv"
    arguments = ["predict", FOLDER / f"{TABLE}.clustruct", FOLDER / f"{TABLE}.csv", "--out", out]
    assert main([str(argument) for argument in arguments]) == 0
    said = np.loadtxt(FOLDER / f"{TABLE}_predictions.csv", skiprows=1)
    np.testing.assert_allclose(np.loadtxt(out, skiprows=1), said, rtol=1e-13)


GOLDEN = [(path.parent.name, path.stem) for path in sorted(golden.FOLDER.glob("*/*.clustruct"))]


def assert_same(found, said, exact):
    """Whether answers are the same: to the last bit, or but for the rounding of other libraries."""
    if isinstance(said, dict):
        assert list(found) == list(said)
        found, said = list(found.values()), list(said.values())
    if exact or not np.asarray(said, dtype=object).size:
        assert found == said
    elif np.asarray(said).dtype.kind == "f":
        np.testing.assert_allclose(found, said, rtol=1e-13, atol=1e-13)
    else:
        assert found == said


def takes_exponentials(name, question):
    """NumPy has exponentials of its own for some processors: their last bits are not recorded."""
    mixed = "SampleCluster" in name and question == "predict"
    return mixed or question == "predict_proba"


@pytest.mark.filterwarnings("ignore:.*was written with scikit-learn")
@pytest.mark.parametrize(("release", "name"), GOLDEN)
def test_golden_file_answers_as_it_did(release, name):
    content = json.loads((golden.FOLDER / release / golden.ANSWERS).read_text(encoding="utf-8"))
    entry = content["models"][name]
    skip_if_newer(content["environment"][1])
    model = cs.load(golden.FOLDER / release / f"{name}.clustruct")
    found = golden.answers_of(model, golden.decoded(entry["X"]))
    assert set(found) >= set(entry["answers"])  # later versions may answer more
    same_sums = content["environment"] == golden.environment()
    for question, said in entry["answers"].items():
        assert_same(found[question], said, same_sums and not takes_exponentials(name, question))


def test_every_release_has_golden_files():
    """A version that is no development version is a release."""
    versions = {release for release, _ in GOLDEN}
    assert versions
    assert ".dev" in cs.__version__ or cs.__version__ in versions, "run `make golden`"


def test_every_use_of_the_library_is_there():
    assert {name.partition("_")[0] for name in NAMES} >= {"features", "samples", "tasks"}


@pytest.mark.parametrize("name", sorted({**classes._OWN, **classes._FOREIGN}))
def test_every_class_on_the_list_exists(name):
    assert classes.name_of(classes.class_of(name)) == name


@pytest.mark.parametrize(
    "name", ["clustruct.Plan", "clustruct.Entries", "clustruct.FeatureCluster"]
)
def test_internal_classes_are_refused(name):
    with pytest.raises(ValueError, match="no model file may hold"):
        classes.class_of(name)
