"""Saving models to files and loading them."""

import json
import platform
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from clustruct import __version__
from clustruct._arguments import as_count
from clustruct._atomic import PathLike
from clustruct.persistence.archive import GET_ANOTHER, read_archive, write_archive
from clustruct.persistence.values import Decoder, Encoder

MODEL = "model.json"
MAX_SIZE = 4 * 2**30


@dataclass(frozen=True, eq=False)
class ModelFile:
    """The content of a model file."""

    model: Any
    notes: dict[str, Any] = field(default_factory=dict)  # plain values saved with the model
    # Versions of the packages that wrote the file.
    packages: dict[str, str] = field(default_factory=dict)


def save(model: Any, path: PathLike, *, notes: Mapping[str, Any] | None = None) -> None:
    """Save a model to a file that holds no code.

    The file is a zip archive of JSON and ``.npy`` members with their SHA-256. It is written
    atomically: an older file of the same name is replaced when the new one is complete.

    Parameters
    ----------
    model : estimator
        A model of this package, or a pipeline of scikit-learn's common transformers that ends in
        one. It need not be fitted.
    path : str or path-like
        Name of the file; ``.clustruct`` is the usual ending.
    notes : mapping, default=None
        Plain values to save with the model.

    Raises
    ------
    ValueError
        If the model holds functions, random number generators or objects of other classes, which
        model files cannot hold. The message says where.

    See Also
    --------
    load : Load such a file.

    Examples
    --------
    >>> import clustruct as cs, tempfile, pathlib
    >>> problem = cs.datasets.make_clustered_features(100, 10, 3, random_state=0)
    >>> model = cs.FeatureClusterRegressor(3).fit(problem.X, problem.y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "model.clustruct"
    ...     cs.save(model, path)
    ...     again = cs.load(path)
    >>> bool((again.predict(problem.X) == model.predict(problem.X)).all())
    True
    """
    encoder = Encoder()
    content = {
        "model": encoder.encode(model, type(model).__name__),
        "notes": encoder.encode(dict(notes or {}), "notes"),
    }
    members = {MODEL: json.dumps(content, allow_nan=False).encode("ascii"), **encoder.members}
    packages = {"clustruct": __version__}
    packages |= {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}
    packages["python"] = platform.python_version()
    write_archive(Path(path), members, packages)


def load(path: PathLike, *, max_size: int = MAX_SIZE) -> Any:
    """Load a model from a file that `save` wrote.

    The file holds no code, and can name only classes on a fixed list.

    Parameters
    ----------
    path : str or path-like
        Name of the file.
    max_size : int, default=4294967296
        Largest size of the unpacked content, in bytes.

    Returns
    -------
    estimator
        The model, the same to the last bit.

    Raises
    ------
    ValueError
        If the file is not a model file, damaged, too large, or written by a later version.

    See Also
    --------
    save : Write such a file.

    Examples
    --------
    >>> import clustruct as cs, tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "model.clustruct"
    ...     cs.save(cs.FeatureClusterRegressor(3), path)
    ...     cs.load(path)
    FeatureClusterRegressor(n_clusters=3)
    """
    return read_model_file(path, max_size=max_size).model


def read_model_file(path: PathLike, *, max_size: int = MAX_SIZE) -> ModelFile:
    """Read model, notes and package versions from a model file."""
    path = Path(path)
    as_count(max_size, "max_size")
    try:
        members, packages = read_archive(path, max_size)
        content, foreign = _content(members)
    except ValueError as error:
        reason = str(error).rstrip(".")
        raise ValueError(f"{path} cannot be loaded: {reason}.") from error
    then, now = packages.get("scikit-learn", "?"), version("scikit-learn")
    if foreign and then.split(".")[:2] != now.split(".")[:2]:
        # scikit-learn does not promise that fitted attributes stay the same.
        warnings.warn(
            f"{path} was written with scikit-learn {then}, and {now} is installed: its "
            "transformers may differ. If predictions matter, install that version, or fit and "
            "save again.",
            stacklevel=3,
        )
    return ModelFile(content["model"], content["notes"], packages)


def _content(members: dict[str, bytes]) -> tuple[dict[str, Any], bool]:
    """Model and notes, and whether some objects are scikit-learn's."""

    def refuse(text: str) -> None:
        raise ValueError(f"{text} is no JSON")

    try:
        encoded = json.loads(members.pop(MODEL, b""), parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{MODEL} in it is no JSON. {GET_ANOTHER}") from error
    if not isinstance(encoded, dict) or set(encoded) != {"model", "notes"}:
        raise ValueError(f"{MODEL} in it is not what a model file holds. {GET_ANOTHER}")
    decoder = Decoder(members)
    try:
        content = {name: decoder.decode(value) for name, value in encoded.items()}
    except ValueError as error:
        raise ValueError(f"{error}. {GET_ANOTHER}") from error
    if not isinstance(content["notes"], dict) or not hasattr(content["model"], "get_params"):
        raise ValueError(f"what it holds is no model. {GET_ANOTHER}")
    return content, decoder.foreign
