"""A new loss is one file in ``losses/``: estimators, searches and files know it by its name."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import clustruct

ROOT = Path(clustruct.__file__).parent
CODE = """
import numpy as np, clustruct as cs
assert "house" in cs.__file__
rng = np.random.default_rng(0)
X = rng.standard_normal((100, 4))
y = rng.geometric(1 / (1 + np.exp(X @ [0.5, 0.5, -0.5, -0.5]))) - 1
tasks = np.arange(100) % 2
model = cs.FeatureClusterRegressorCV((1, 2), alphas=1e-3, loss="geometric", cv=2).fit(X, y)
assert (model.predict(X) > 0.0).all()
cs.save(model, "model.clustruct")
assert (cs.load("model.clustruct").predict(X) == model.predict(X)).all()
assert (cs.SampleClusterRegressor(1, loss="geometric").fit(X, y).predict(X) > 0.0).all()
assert (cs.TaskClusterRegressor(1, loss="geometric").fit(X, y, tasks=tasks).predict(X) > 0.0).all()
"""


def test_one_file_is_all_it_takes(tmp_path):
    house = tmp_path / "house" / "clustruct"
    house.mkdir(parents=True)
    for room in ROOT.iterdir():
        if room.name not in ("losses", "__pycache__"):
            (house / room.name).symlink_to(room, target_is_directory=room.is_dir())
    shutil.copytree(ROOT / "losses", house / "losses")
    text = (Path(__file__).parent / "users.py").read_text(encoding="utf-8")
    family = text.partition("class Bare")[0].replace(
        "clustruct.losses import", "clustruct.losses.base import"
    )
    (house / "losses" / "geometric.py").write_text(
        f'{family}\n__all__ = ["Geometric"]\n', encoding="utf-8"
    )
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(house.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
