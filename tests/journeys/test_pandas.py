"""Someone with a data frame in Python, who goes on to the command line and comes back."""

SETUP = """
import numpy as np, pandas as pd, clustruct as cs
rng = np.random.default_rng(0)
frame = pd.DataFrame(rng.normal(size=(80, 6)), columns=list("abcdef"))
frame["town"] = rng.choice(["here", "there"], 80)
frame["y"] = 2 * frame[["a", "b", "c"]].sum(axis=1) - frame[["d", "e", "f"]].sum(axis=1)
"""


def test_from_python_and_back(terminal):
    terminal.python(f"{SETUP}\nframe.to_parquet('t.parquet')")
    quick = ("--clusters", "4", "--alpha", "1e-4", "--nonzero", "all")
    terminal.works("fit", "t.parquet", "--target", "y", *quick, "--out", "m")
    told = terminal.works("predict", "m", "t.parquet").splitlines()[1:]
    code = f"""{SETUP}
model = cs.load("m")
print(*model.predict(frame), sep="\\n")
"""
    assert terminal.python(code).splitlines() == told


def test_models_are_saved_in_python(terminal):
    code = f"""{SETUP}
X, y = frame[list("abcdef")], frame["y"]
model = cs.FeatureClusterRegressor(2).fit(X, y)
cs.save(model, "m")
again = cs.load("m")
assert (again.predict(X) == model.predict(X)).all()
print([list(group.features) for group in again.clusters()])
"""
    assert terminal.python(code).strip() == "[['d', 'e', 'f'], ['a', 'b', 'c']]"
    terminal.write("t.csv", "a,b\n1,2\n")
    line = terminal.fails("predict", "m", "t.csv")
    assert "m holds a model, but not what the command line needs" in line


def test_mistakes_in_python(terminal):
    code = f"""{SETUP}
def complaint(call):
    try:
        call()
    except ValueError as error:
        return str(error)

numbers = frame[list("abcdef")]
print(complaint(lambda: cs.SampleClusterRegressor(2).fit(frame.drop(columns="y"), frame["y"])))
print(complaint(lambda: cs.FeatureClusterRegressor(0).fit(numbers, frame["y"])))
odd = cs.FeatureClusterRegressor(2, random_state=np.random.RandomState(0)).fit(numbers, frame["y"])
print(complaint(lambda: cs.save(odd, "m")))
open("broken", "w").write("not a model")
print(complaint(lambda: cs.load("broken")))
"""
    lines = terminal.python(code).splitlines()
    assert "could not convert string to float: 'here'" in lines[0] or "there" in lines[0]
    assert "n_clusters" in lines[1]
    assert "random_state is a RandomState" in lines[2]
    assert "broken cannot be loaded" in lines[3]
