"""Someone with a sparse file, and a machine that reads the answers."""

import gzip
import json
import random


def lines(n=60, d=12, classes=False):
    draw = random.Random(0)
    for _ in range(n):
        entries = {column: draw.gauss(0, 1) for column in sorted(draw.sample(range(1, d + 1), 6))}
        score = sum((2 if column < 7 else -1) * value for column, value in entries.items())
        target = (1 if score > 0 else -1) if classes else score + draw.gauss(0, 0.01)
        yield f"{target} " + " ".join(f"{column}:{value:.5f}" for column, value in entries.items())


QUICK = ("--clusters", "2", "--alpha", "0.001", "--nonzero", "all")


def test_a_sparse_file(terminal):
    (terminal / "t.svm.gz").write_bytes(gzip.compress("\n".join(lines()).encode()))
    answer = json.loads(terminal.works("fit", "t.svm.gz", *QUICK, "--out", "m", "--json"))
    names = [set(group["features"]) for group in answer["model"]["groups"]]
    assert names == [{f"x{j}" for j in range(7, 13)}, {f"x{j}" for j in range(1, 7)}]
    assert answer["held_out"]["scores"][-1]["R²"] > 0.7
    rows = json.loads(terminal.works("predict", "m", "t.svm.gz", "--json"))
    assert len(rows["predictions"]) == 60


def test_classes(terminal):
    terminal.write("t.svm", "\n".join(lines(n=120, classes=True)))
    answer = json.loads(terminal.works("fit", "t.svm", *QUICK, "--json"))
    assert answer["target"]["kind"] == "classification"


def test_mistakes(terminal):
    terminal.write("t.svm", "\n".join([*lines(), "1 one:2"]))
    line = terminal.fails("fit", "t.svm")
    assert "t.svm, line 61: '1 one:2' is not in libsvm's form" in line
    terminal.write("t.svm", "\n".join(lines()))
    done = terminal.run("fit", "t.svm", "--target", "y")
    assert done.returncode == 2
    assert "t.svm is libsvm, whose columns have no names" in done.stderr
    terminal.works("fit", "t.svm", *QUICK, "--out", "m", "--json")
    terminal.write("wide.svm", "1 99:1\n")
    line = terminal.fails("predict", "m", "wide.svm")
    assert "wide.svm has a column 99, and the last one that the model knows is 12" in line
    terminal.write("t.csv", "a,b\n1,2\n")
    assert "t.csv is CSV, and m was fitted to libsvm" in terminal.fails("predict", "m", "t.csv")
