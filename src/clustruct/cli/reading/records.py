"""Records of JSON files: one a line, or all of them in an array."""

import codecs
import json
from collections.abc import Iterator
from typing import Any

from clustruct.cli.reading.streams import START, Source

__all__ = ["json_array", "json_lines"]

# A record that is longer is taken to have no end.
LONGEST_RECORD = 1 << 26


def json_lines(source: Source) -> Iterator[dict[str, Any]]:
    """The records of a file with one on each line."""
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
    """The records of one array, of which one at a time is in memory."""
    text = _Text(source)
    decoder = json.JSONDecoder()
    if text.next_sign() != "[":
        raise ValueError(_no_records(source.name, 1))
    text.skip()
    number = 0
    while (sign := text.next_sign()) != "]":
        if number and sign != ",":
            raise ValueError(_no_records(source.name, number + 1))
        if number:
            text.skip()
        number += 1
        if text.next_sign() != "{":
            raise ValueError(_no_records(source.name, number))
        yield text.decoded(decoder, number)


class _Text:
    """The text of a JSON file, read as far as it is needed."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._decode = codecs.getincrementaldecoder("utf-8-sig")()
        self._text, self._place, self._at_end = "", 0, False

    def _read(self, n_bytes: int = START) -> bool:
        """Read on; whether there was more."""
        if self._at_end:
            return False
        try:
            block = self._source.stream.read(n_bytes)
            more = self._decode.decode(block, final=not block)
        except UnicodeDecodeError as error:
            raise ValueError(f"{self._source.name} is not text in utf-8. Mend the file.") from error
        except EOFError as error:
            raise ValueError(
                f"{self._source.name} ends too early. Get an undamaged copy."
            ) from error
        self._text, self._place = self._text[self._place :] + more, 0
        self._at_end = not block
        return True

    def next_sign(self) -> str:
        """The next sign that is no space, which is not skipped; empty at the end."""
        while True:
            while self._place < len(self._text) and self._text[self._place].isspace():
                self._place += 1
            if self._place < len(self._text):
                return self._text[self._place]
            if not self._read():
                return ""

    def skip(self) -> None:
        """Go on behind the next sign."""
        self._place += 1

    def decoded(self, decoder: json.JSONDecoder, number: int) -> dict[str, Any]:
        """The record that begins here; they are counted from 1."""
        size = START
        while True:
            try:
                record, self._place = decoder.raw_decode(self._text, self._place)
            except (ValueError, RecursionError) as error:
                too_long = len(self._text) - self._place > LONGEST_RECORD
                if too_long or not self._read(size):  # it is cut off, or no JSON
                    raise ValueError(_no_records(self._source.name, number)) from error
                size *= 2
            else:
                row: dict[str, Any] = record
                return row


def _no_records(name: str, number: int) -> str:
    return (
        f"{name}, record {number}: no JSON object. Give an array of objects, such as "
        '[{"age": 31, "city": "Lyon"}], or one object a line.'
    )
