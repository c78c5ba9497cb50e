"""Someone who wants something to look at, and to show."""

import csv
import random

EVIL = "<script>alert(1)</script>"
QUICK = ("--clusters", "2", "--alpha", "0.01", "--nonzero", "all")


def write_table(terminal):
    draw = random.Random(0)
    with (terminal / "t.csv").open("w", newline="") as stream:
        table = csv.writer(stream)
        table.writerow([EVIL, "b", "c", "y"])
        for _ in range(60):
            row = [draw.gauss(0, 1) for _ in range(3)]
            table.writerow([*row, row[0] + row[1] - row[2] + draw.gauss(0, 0.1)])


def test_a_page_to_show(terminal):
    write_table(terminal)
    told = terminal.works(
        "fit", "t.csv", "--target", "y", *QUICK, "--out", "m", "--report", "r.html"
    )
    assert told.rstrip().endswith("Report: r.html")
    page = (terminal / "r.html").read_text(encoding="utf-8")
    assert EVIL not in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    told = terminal.works("report", "m", "t.csv", "--out", "again.html")
    assert (terminal / "again.html").exists()


def test_mistakes(terminal):
    write_table(terminal)
    terminal.works("fit", "t.csv", "--target", "y", *QUICK, "--out", "m", "--json")
    table = [line.rpartition(",")[0] for line in (terminal / "t.csv").read_text().splitlines()]
    terminal.write("new.csv", "\n".join(table))
    line = terminal.fails("report", "m", "new.csv")
    assert "new.csv has no column 'y', which the model predicts" in line
    done = terminal.run("report", "m", "t.csv", "--out", "no/folder/r.html")
    assert done.returncode == 2
    assert "which is no folder" in done.stderr
    line = terminal.fails("report", "t.csv", "t.csv")
    assert "t.csv cannot be loaded: it is no model file" in line
    assert not (terminal / "report.html").exists()
