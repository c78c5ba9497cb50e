"""Golden files: models of every kind as a release writes them, with inputs and answers.

``make golden`` writes the folder of the present version, once: what is there is never written
again. `test_written_before` loads the files of all versions and compares the answers.
"""

import json
import platform
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import sklearn
import threadpoolctl
from scipy import sparse

import clustruct as cs
from tests.persistence.models import FRAME, TASKS, every_model

FOLDER = Path(__file__).parent / "golden"
ANSWERS = "answers.json"
ROWS = 6
# Methods that take samples alone, and attributes, as far as a model has them.
METHODS = ("predict", "predict_proba", "decision_function", "transform", "predict_experts")
ATTRIBUTES = ("labels_", "n_clusters_", "objective_", "best_score_", "best_params_")


def environment():
    """What the last bits of answers depend on: libraries, and the processor they are for."""
    blas = sorted(
        f"{info['internal_api']} {info['version']} {info.get('architecture')}"
        for info in threadpoolctl.threadpool_info()
        if info["user_api"] == "blas"
    )
    return [np.__version__, sklearn.__version__, sys.platform, platform.machine(), *blas]


def encoded(X):
    """Some samples as plain values, and what they were."""
    if isinstance(X, pd.DataFrame):
        rows = X.iloc[:ROWS].astype(object)
        kinds = {name: str(kind) for name, kind in X.dtypes.items()}
        return {"kinds": kinds, "values": rows.where(rows.notna(), None).values.tolist()}
    if sparse.issparse(X):
        return {"sparse": True, "kind": str(X.dtype), "values": X[:ROWS].toarray().tolist()}
    return {"kind": str(X.dtype), "values": X[:ROWS].tolist()}


def decoded(content):
    """Samples of their plain values."""
    if "kinds" in content:
        frame = pd.DataFrame(content["values"], columns=list(content["kinds"]), dtype=object)
        return frame.astype(content["kinds"])
    X = np.array(content["values"], dtype=content["kind"])
    return sparse.csr_array(X) if content.get("sparse") else X


def answers_of(model, X):
    """What a model says about samples and about itself, as plain values."""
    said = {}
    for name in METHODS:
        if hasattr(model, name):
            said[name] = plain(getattr(model, name)(X))
    last = model[-1] if hasattr(model, "steps") else model
    said |= {name: plain(getattr(last, name)) for name in ATTRIBUTES if hasattr(last, name)}
    said["groups"] = [int(group.size) for group in last.clusters()]
    return said


def plain(value):
    value = value.toarray() if sparse.issparse(value) else value
    return json.loads(json.dumps(value, default=lambda one: np.asarray(one).tolist()))


def models():
    """Names and models: those of every kind, and tasks told apart by ids."""
    for place, (model, X) in enumerate(every_model()):
        kind = type(model[-1] if hasattr(model, "steps") else model).__name__
        yield f"{place:02}_{kind}", model, X
    frame = FRAME.assign(target=np.arange(len(FRAME)) % 5 + FRAME["size"])
    factors = {"age": "ordinal", "country": "nominal", "new": "nominal"}
    prices = cs.FeatureClusterRegressor(None, factors=factors, price=0.1)
    yield "prices", prices.fit(frame.drop(columns="target"), frame["target"]), FRAME
    X, Y = TASKS.columns()
    model = cs.TaskClusterRegressor(2, random_state=0).fit(X, Y)
    model.stability_ = cs.stability(model, X, Y, n_resamples=4, random_state=0)
    yield "stability", model, X


def main():
    """Write the folder of this version."""
    folder = FOLDER / cs.__version__
    if folder.exists():
        sys.exit(f"{folder} is there already, and golden files are never written again.")
    every = list(models())
    folder.mkdir(parents=True)
    content = {"environment": environment(), "models": {}}
    for name, model, X in every:
        cs.save(model, folder / f"{name}.clustruct")
        inputs = encoded(X)
        content["models"][name] = {"X": inputs, "answers": answers_of(model, decoded(inputs))}
    (folder / ANSWERS).write_text(json.dumps(content, indent=0), encoding="utf-8")
    print(f"Wrote {len(content['models'])} models to {folder}.")


if __name__ == "__main__":
    main()
