"""What commands print with."""

import io

from clustruct._console import Console, plain_table


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_plain_table_wraps_and_aligns():
    lines = plain_table(("n", "name"), [("1", "one"), ("10", "ten " * 9)], width=30)
    assert lines == [
        " n  name",
        "---------------------------",
        " 1  one",
        "10  ten ten ten ten ten ten",
        "    ten ten ten",
        "",
    ]


def test_progress_on_a_terminal_only():
    terminal, pipe = Terminal(), io.StringIO()
    with Console(err=terminal).progress("thinking"):
        assert terminal.getvalue() == "thinking ..."
    assert terminal.getvalue().endswith("\r")
    with Console(err=pipe).progress("thinking"):
        pass
    assert pipe.getvalue() == ""


def test_notes_go_to_standard_error():
    out, err = io.StringIO(), io.StringIO()
    Console(out, err).note("by the way")
    assert (out.getvalue(), err.getvalue()) == ("", "by the way\n")
