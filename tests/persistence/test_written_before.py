"""Model files that were written before the modules of the package were moved and renamed.

`written_before` holds one file for each kind of model, written by version 0.1.0.dev0, and the
predictions of that version. The files must load, and predict the same to the last bits.
"""

from pathlib import Path

import numpy as np
import pytest

import clustruct as cs
from clustruct.cli import main
from clustruct.persistence import classes

FOLDER = Path(__file__).parent / "written_before"
NAMES = sorted(path.stem for path in FOLDER.glob("*.clustruct"))
TABLE = "command_line"


@pytest.mark.parametrize("name", [name for name in NAMES if name != TABLE])
def test_model_predicts_what_it_did(name):
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
    out = tmp_path / "predictions.csv"
    arguments = ["predict", FOLDER / f"{TABLE}.clustruct", FOLDER / f"{TABLE}.csv", "--out", out]
    assert main([str(argument) for argument in arguments]) == 0
    said = np.loadtxt(FOLDER / f"{TABLE}_predictions.csv", skiprows=1)
    np.testing.assert_allclose(np.loadtxt(out, skiprows=1), said, rtol=1e-13)


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
