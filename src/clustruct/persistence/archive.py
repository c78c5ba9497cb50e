"""The zip archive of a model file, written atomically and checked before it is read.

The member ``manifest.json`` holds the format, its version, the packages that wrote the file, and
the size and SHA-256 of every other member. Names and declared sizes are checked before anything is
unpacked, and the SHA-256 of a member before it is parsed.
"""

import hashlib
import json
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from clustruct._atomic import replacing

FORMAT = "clustruct model"
VERSION = 1
MANIFEST = "manifest.json"

_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest date in zip: equal models give equal bytes
_NAME = re.compile(r"manifest\.json|model\.json|arrays/[0-9]{1,9}\.npy")
_MOST_MEMBERS = 1_000_000
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 0x1
# Exceptions that Python's zip reader raises for damaged archives.
_DAMAGE: tuple[type[Exception], ...] = (zipfile.BadZipFile, zlib.error, struct.error, EOFError)
_DAMAGE += (ArithmeticError, RuntimeError, ValueError, OSError)
GET_ANOTHER = "Get an undamaged copy, or save the model again"


def write_archive(path: Path, members: Mapping[str, bytes], packages: Mapping[str, str]) -> None:
    """Write a model file atomically, from its members and the versions of the packages."""
    sums = {name: _sum(data) for name, data in members.items()}
    manifest = {"format": FORMAT, "version": VERSION, "packages": packages, "members": sums}
    first = json.dumps(manifest, indent=1).encode("ascii")
    with replacing(path) as partial, zipfile.ZipFile(partial, "w") as target:
        for name, data in ((MANIFEST, first), *members.items()):
            info = zipfile.ZipInfo(name, _EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            target.writestr(info, data)


def read_archive(path: Path, max_size: int) -> tuple[dict[str, bytes], dict[str, str]]:
    """Read members and package versions, checked by the manifest; ValueError if that fails."""
    with path.open("rb") as stream:
        try:
            with zipfile.ZipFile(stream) as source:
                infos = _checked_infos(source, max_size, path.stat().st_size)
                members = {name: source.read(info) for name, info in infos.items()}
        except _Refusal:
            raise
        except _DAMAGE as error:
            raise ValueError(_not_an_archive(path, error)) from error
    manifest = _manifest(members.pop(MANIFEST))
    sums = manifest["members"]
    if set(sums) != set(members):
        raise ValueError(f"its members are not those that its manifest names. {GET_ANOTHER}")
    for name, data in members.items():
        if sums[name] != _sum(data):
            raise ValueError(f"the SHA-256 of {name} is not that of its manifest. {GET_ANOTHER}")
    return members, manifest["packages"]


class _Refusal(ValueError):
    """A reason to refuse an archive that the zip reader would accept."""


def _checked_infos(
    source: zipfile.ZipFile, max_size: int, n_bytes: int
) -> dict[str, zipfile.ZipInfo]:
    """The members of an archive by name, checked before any of it is unpacked."""
    infos = source.infolist()
    if len(infos) > _MOST_MEMBERS:
        raise _Refusal(f"it has {len(infos)} members, which no model needs. {GET_ANOTHER}")
    by_name = {info.filename: info for info in infos}
    if MANIFEST not in by_name:
        raise _Refusal(
            f"it is a zip archive without {MANIFEST}, so that `clustruct.save` did not write it. "
            "Name a file that it wrote"
        )
    strange = [name for name in by_name if not _NAME.fullmatch(name)]
    if strange or len(by_name) < len(infos):
        name = repr(strange[0][:80]) if strange else "a name twice"
        raise _Refusal(f"it has a member that no model file has: {name}. {GET_ANOTHER}")
    if any(i.flag_bits & _ENCRYPTED or i.compress_type not in _METHODS for i in infos):
        raise _Refusal(f"it is packed in a way that model files are not. {GET_ANOTHER}")
    if any(info.compress_size > n_bytes for info in infos):  # memory is taken for what is declared
        raise _Refusal(f"it has a member that is longer than the file. {GET_ANOTHER}")
    size = sum(info.file_size for info in infos)
    if size > max_size:
        raise _Refusal(
            f"it would take {size:,} bytes, more than the {max_size:,} allowed. If you trust where "
            f"it came from, allow more: clustruct.load(path, max_size={size})"
        )
    return by_name


def _manifest(data: bytes) -> dict[str, Any]:
    """Parse the manifest; ValueError if this version does not understand it."""
    try:
        manifest = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its manifest is no JSON. {GET_ANOTHER}") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ValueError(f"its manifest is not that of a model file. {GET_ANOTHER}")
    version = manifest.get("version")
    if type(version) is not int or version < 1:
        raise ValueError(f"its manifest names no version. {GET_ANOTHER}")
    if version > VERSION:
        raise ValueError(
            f"it has version {version} of the format, and this release of clustruct reads up to "
            f"{VERSION}. Update clustruct"
        )
    if not _is_table(manifest.get("members"), dict) or not _is_table(manifest.get("packages"), str):
        raise ValueError(f"its manifest is incomplete. {GET_ANOTHER}")
    return manifest


def _is_table(value: object, kind: type) -> bool:
    return isinstance(value, dict) and all(isinstance(entry, kind) for entry in value.values())


def _sum(data: bytes) -> Mapping[str, Any]:
    """The entry of a member in the manifest."""
    return {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def _not_an_archive(path: Path, error: Exception) -> str:
    """The message for a file that cannot be unpacked."""
    with path.open("rb") as stream:
        start = stream.read(4)
    if not start:
        return "it is empty. Save the model again"
    if not start.startswith(b"PK"):
        what = "a pickle" if start[:1] == b"\x80" else "something else"
        return f"it is no model file but {what}. Name a file that `clustruct.save` wrote"
    return f"it is damaged: {error}. {GET_ANOTHER}"
