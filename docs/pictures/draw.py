"""Draw the pictures of the README and of the first page, and look at a report for the third one.

    python docs/pictures/draw.py

The last one is a screenshot, and takes chromium; where there is none, the old one stays.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from PIL import Image
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import Ridge
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import clustruct as cs

HERE = Path(__file__).parent
STYLE = {"svg.hashsalt": "clustruct", "svg.fonttype": "none", "font.family": "sans-serif"}


def tumours():
    data = load_breast_cancer(as_frame=True)
    X = StandardScaler().set_output(transform="pandas").fit_transform(data.data)
    return X, data.target


def draw_weights():
    X, y = tumours()
    ridge = Ridge(10.0).fit(X, y)
    model = cs.FeatureClusterRegressor(5, alpha=10.0 / len(y), random_state=0).fit(X, y)
    figure = Figure(figsize=(9, 5.6), layout="constrained")
    display = cs.plot.weights(model, reference=ridge.coef_, ax=figure.subplots())
    display.ax_.set_title(
        "Thirty weights of a ridge regression (dots), and five that features share (bars)",
        loc="left",
        fontsize="medium",
    )
    save(figure, "weights")


def draw_experts():
    problem = cs.datasets.make_experts(120, 3, 3, random_state=0)
    model = cs.SampleClusterRegressorCV(range(1, 7), random_state=0).fit(problem.X, problem.y)
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    cs.plot.experts(model, problem.X, problem.y, ax=left)
    cs.plot.path(model, ax=right)
    save(figure, "experts")


def save(figure, name):
    with mpl.rc_context(STYLE):
        figure.savefig(HERE / f"{name}.svg", metadata={"Date": None})
    print(HERE / f"{name}.svg")


def look_at_a_report():
    program = shutil.which("chromium")
    if program is None:
        print("no chromium here: report.png stays as it is")
        return
    data = load_breast_cancer(as_frame=True)
    names = data.target_names[data.target]
    X, X_test, y, y_test = train_test_split(data.data, names, test_size=0.3, random_state=0)
    search = cs.FeatureClusterClassifierCV(range(2, 9), rule="fewest", random_state=0)
    model = make_pipeline(StandardScaler(), search).fit(X, y)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        page = cs.report(model, X, y, path, X_test=X_test, y_test=y_test, title="Tumours")
        command = [
            program,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--hide-scrollbars",
            f"--user-data-dir={folder}/profile",
            "--window-size=900,1000",
            f"--screenshot={HERE / 'report.png'}",
            page.as_uri(),
        ]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
    with Image.open(HERE / "report.png") as picture:
        small = picture.convert("RGB").quantize(48)
    small.save(HERE / "report.png", optimize=True)
    print(HERE / "report.png")


if __name__ == "__main__":
    draw_weights()
    draw_experts()
    look_at_a_report()
