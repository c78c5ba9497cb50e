import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(sys.executable).parent / "clustruct"


class Terminal:
    """A folder, and commands typed in it."""

    def __init__(self, folder):
        self.folder = folder

    def __truediv__(self, name):
        return self.folder / name

    def write(self, name, content):
        data = content if isinstance(content, bytes) else content.encode()
        (self.folder / name).write_bytes(data)

    def run(self, *words, stdin=None):
        command = [str(SCRIPT)] if SCRIPT.exists() else [sys.executable, "-m", "clustruct"]
        return self._done([*command, *words], stdin)

    def python(self, code):
        done = self._done([sys.executable, "-c", code], None)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _done(self, command, stdin):
        return subprocess.run(
            command,
            cwd=self.folder,
            input=stdin,
            capture_output=True,
            text=stdin is None or isinstance(stdin, str),
            check=False,
            timeout=300,
        )

    def works(self, *words, stdin=None):
        """What a command that succeeds prints."""
        done = self.run(*words, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def fails(self, *words, status=1):
        """The one line that a command complains with."""
        done = self.run(*words)
        assert done.returncode == status, (done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
        (line,) = [line for line in done.stderr.splitlines() if "error:" in line]
        return line


@pytest.fixture
def terminal(tmp_path):
    return Terminal(tmp_path)
