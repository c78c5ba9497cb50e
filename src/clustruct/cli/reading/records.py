"""Records of JSON files: one a line, or all of them in an array."""

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any

from clustruct.cli.reading.streams import START, Source

# A record that is longer is taken to have no end.
LONGEST_RECORD = 1 << 26
SPACE = re.compile(r"\s*")


def json_lines(source: Source) -> Iterator[dict[str, Any]]:
    """Yield the records of a file with one on each line."""
    for number, line in enumerate(source.stream, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(
                f"{source.name}, line {number}: no JSON. Give one object a line, such as "
                '{"age": 31, "city": "Lyon"}, or an array of them.'
            ) from error
        if not isinstance(row, dict):
            raise ValueError(
                f"{source.name}, line {number}: no JSON object. Give one object a line."
            )
        yield row


def json_array(source: Source) -> Iterator[dict[str, Any]]:
    """Yield the records of one array, of which one at a time is in memory."""
    text, number = _Text(source), 0
    while (sign := text.next_sign()) != "]" or not number:
        text.place += 1  # behind the bracket of the array, or behind a comma
        after = text.next_sign()
        if not number and sign == "[" and after == "]":
            return
        number += 1
        record = text.record() if (sign, after) == ("[" if number == 1 else ",", "{") else None
        if record is None:
            raise ValueError(
                f"{source.name}, record {number}: no JSON object. Give an array of objects, such "
                'as [{"age": 31, "city": "Lyon"}], or one object a line.'
            )
        yield record


class _Text:
    """The text of a JSON file, read as far as it is needed; `place` is where to go on."""

    def __init__(self, source: Source) -> None:
        self._name, self.place, self._text = source.name, 0, ""
        self._reader = codecs.getreader("utf-8-sig")(source.stream)

    def _read(self, n_bytes: int = START) -> bool:
        """Read on; whether there was more."""
        try:
            more = self._reader.read(n_bytes)
        except UnicodeDecodeError as error:
            raise ValueError(f"{self._name} is not text in utf-8. Mend the file.") from error
        self._text, self.place = self._text[self.place :] + more, 0
        return bool(more)

    def next_sign(self) -> str:
        """Go to the next sign that is no space; empty at the end."""
        while True:
            found = SPACE.match(self._text, self.place)
            self.place = self.place if found is None else found.end()
            if self.place < len(self._text) or not self._read():
                return self._text[self.place : self.place + 1]

    def record(self) -> dict[str, Any] | None:
        """Decode the record that begins here; None if it has no end, or is no JSON."""
        size = START
        while True:
            try:
                record: dict[str, Any]
                record, self.place = json.JSONDecoder().raw_decode(self._text, self.place)
                return record
            except (ValueError, RecursionError):
                too_long = len(self._text) - self.place > LONGEST_RECORD
                if too_long or not self._read(size):
                    return None
                size *= 2
