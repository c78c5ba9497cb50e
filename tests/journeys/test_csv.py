"""Someone with a CSV file and no Python: from the table to groups, predictions, and back again."""

import csv
import random


def write_flats(terminal, n=80):
    draw = random.Random(0)
    with (terminal / "flats.csv").open("w", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(["size", "rooms", "balcony", "district", "built", "rent"])
        for row in range(n):
            size, rooms = draw.uniform(20, 120), draw.randint(1, 5)
            district = draw.choice(["north", "south", "old town"])
            rent = 9 * size + 20 * rooms + 120 * (district == "old town") + draw.gauss(0, 10)
            built = f"{draw.randint(1900, 2020)}-06-01"
            field = "" if row == 7 else f"{size:.1f}"
            table.writerow([field, rooms, draw.choice("01"), district, built, f"{rent:.2f}"])


def test_a_table_of_flats(terminal):
    write_flats(terminal)
    options = ("--alpha", "0.01", "--clusters", "3:5", "--out", "flats.clustruct")
    told = terminal.works("fit", "flats.csv", "--target", "rent", *options)
    for text in (
        "regression",
        "district",
        "category",
        "built",
        "date",
        "held out",
        "Ridge",
        "boosting",
    ):
        assert text in told
    again = terminal.works("predict", "flats.clustruct", "flats.csv")
    assert again.splitlines()[0] == "prediction"
    assert len(again.splitlines()) == 81
    terminal.works("predict", "flats.clustruct", "flats.csv", "--out", "rents.parquet")
    piped = (terminal / "flats.csv").read_text()
    same = terminal.works("predict", "flats.clustruct", "-", "--format", "csv", stdin=piped)
    assert same == again


def test_a_column_of_another_name(terminal):
    write_flats(terminal)
    line = terminal.fails("fit", "flats.csv", "--target", "rents")
    assert "flats.csv has no column 'rents' (--target). Did you mean 'rent'?" in line


def test_text_in_a_number(terminal):
    write_flats(terminal)
    table = (terminal / "flats.csv").read_text().splitlines()
    table[5] = "about fifty" + table[5][table[5].index(",") :]
    terminal.write("flats.csv", "\n".join(table))
    line = terminal.fails("fit", "flats.csv", "--target", "rent")
    assert "flats.csv, column 'size'" in line
    assert "'about fifty' in row 5" in line
    assert "leave the field empty" in line


def test_a_column_without_values(terminal):
    rows = [f"{i},,{i % 7},{2 * i + i % 7}" for i in range(30)]
    terminal.write("t.csv", "\n".join(["a,empty,b,y", *rows]))
    quick = ("--clusters", "2", "--alpha", "0.01", "--nonzero", "all")
    done = terminal.run("fit", "t.csv", "--target", "y", *quick)
    assert done.returncode == 0
    assert "t.csv, column 'empty': left out, as it has no values. --drop 'empty'" in done.stderr
    line = terminal.fails("fit", "t.csv", "--target", "empty")
    assert "t.csv, column 'empty': the target has no values" in line
    assert "name another column with --target" in line


def test_too_little_to_learn_from(terminal):
    terminal.write("one.csv", "a,b,y\n1,2,3\n")
    assert "one.csv, column 'y'" in terminal.fails("fit", "one.csv", "--target", "y")
    terminal.write("same.csv", "a,b,y\n" + "\n".join(f"{i},{i * i},5" for i in range(20)))
    line = terminal.fails("fit", "same.csv", "--target", "y")
    assert "same.csv, column 'y': the target is '5' in every row" in line
    terminal.write("none.csv", "a,b,y\n")
    assert "none.csv has columns but no rows" in terminal.fails("fit", "none.csv", "--target", "y")


def test_files_that_are_not_what_they_say(terminal):
    terminal.write("empty.csv", "")
    assert "empty.csv is empty" in terminal.fails("fit", "empty.csv", "--target", "y")
    terminal.write("photo.csv", b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    line = terminal.fails("fit", "photo.csv", "--target", "y")
    assert "photo.csv is no CSV file but a picture. Name the right file" in line
    terminal.write("twice.csv", "a,a,y\n1,2,3\n4,5,6\n")
    line = terminal.fails("fit", "twice.csv", "--target", "y")
    assert "twice.csv has 2 columns named 'a'" in line
    terminal.write("model.clustruct", "a,b\n1,2\n")
    line = terminal.fails("predict", "model.clustruct", "twice.csv")
    assert "model.clustruct cannot be loaded: it is no model file" in line
