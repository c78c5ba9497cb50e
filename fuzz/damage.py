"""Changes of bytes and of text that break files."""

from typing import Any

from fuzz.cases import Random

Edit = list[Any]

# What may stand in a field, a name or a line.
HOSTILE = (
    '"', '""', "'", ",", ";", "\t", "|", "\n", "\r", "\r\n", "\0", "\x1b[2J", "\x1b]0;x\x07",
    "\u202e", "\ufeff", "\ud7ff", "é", "日本", "nan", "NaN", "inf", "-inf", "1e999", "-1e999",
    "1e-999", "1e308", "9" * 400, "0x10", "1_000", "1,5", "01", "-0", "true", "null", "None", "",
    " ", "#", "=1+1", "{", "}", "[", "]", "{}", "[[[[", ":", "1:", ":1", "99999999999:1",
    "-1:1", "2024-13-45", "2024-01-01T00:00:00Z", "9999-12-31", "x" * 5000, "a,b\n" * 50,
    '{"a": 1}\n', '{"a": {"b": [1]}}', "\\", "\\u0000", "%s", "../../x", "$(x)",
)  # fmt: skip


def draw_damage(rng: Random) -> Edit:
    """A change of bytes; places are shares of the length, so that they suit every content."""
    kind = str(rng.choice(["flip", "flip", "cut", "truncate", "insert", "zero", "swap", "repeat"]))
    return [kind, float(rng.random()), int(rng.integers(256)), int(rng.integers(1, 40))]


def draw_hostility(rng: Random) -> Edit:
    """Hostile text at some place, or instead of what is there."""
    kind = str(rng.choice(["write", "paste"]))
    return [kind, float(rng.random()), int(rng.integers(len(HOSTILE))), int(rng.integers(1, 12))]


def damaged(content: bytes, edits: list[Edit]) -> bytes:
    """The content with all changes made."""
    data = bytearray(content)
    for kind, share, number, length in edits:
        first = min(int(share * len(data)), max(len(data) - 1, 0))
        stop = first + length
        if kind == "flip" and data:
            data[first] ^= 1 << number % 8
        elif kind == "cut":
            del data[first:stop]
        elif kind == "truncate":
            del data[first:]
        elif kind == "insert":
            data[first:first] = bytes([number]) * length
        elif kind == "zero":
            data[first:stop] = bytes(len(data[first:stop]))
        elif kind == "swap":
            data[first : stop + length] = data[stop : stop + length] + data[first:stop]
        elif kind == "repeat":
            data[first:first] = data[first:stop] * 20
        elif kind in ("write", "paste"):
            text = HOSTILE[number].encode("utf-8")
            data[first : first if kind == "paste" else stop] = text
    return bytes(data)
