"""``clustruct predict``: predictions of a saved model."""

import argparse
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from clustruct.cli.application import Batch, Saved, load_model, read_batches
from clustruct.cli.console import Console
from clustruct.cli.messages import as_json
from clustruct.cli.reading.scratch import Scratch
from clustruct.cli.reading.tables import pandas
from clustruct.cli.writing import write_pieces

# Rows that are made text at a time.
PRINTED_ROWS = 1 << 16


def run(args: argparse.Namespace, console: Console) -> None:
    """Load, read, predict, write."""
    args.keep = list(dict.fromkeys(args.keep))
    with console.progress("reading"):
        saved = load_model(args.model)
    tally, values = _Tally(saved), None
    with Scratch() as scratch:
        frames = map(tally.predict, read_batches(saved, args, scratch, console))
        if args.out is not None:
            with console.progress("predicting"):
                write_pieces(frames, args.out)
        elif args.json:
            values = [value for frame in frames for value in frame.to_dict(orient="records")]
        else:
            for number, frame in enumerate(_slices(frames)):
                console.data(frame.to_csv(index=False, header=not number).rstrip("\n"))
    scores = tally.scores()
    if args.json:
        content = {"rows": tally.n_rows, "out": args.out, "scores": scores, "predictions": values}
        console.say(as_json(content))
        return
    if args.out is not None:
        console.say(f"Predictions of {tally.n_rows} rows: {args.out}")
    if scores:
        told = ", ".join(f"{name} {value:.4f}" for name, value in scores.items())
        console.note(f"clustruct: {tally.source} has the targets, too: {told}.")


def _slices(frames: Iterable[Any]) -> Iterator[Any]:
    """Frames of limited height: the text of a table takes more memory than the table."""
    for frame in frames:
        for first in range(0, len(frame), PRINTED_ROWS):
            yield frame.iloc[first : first + PRINTED_ROWS]


def _predictions(saved: Saved, batch: Batch) -> Any:
    """A column of predictions, and one for each class or expert where there are any."""
    routed = batch.routed
    columns = {"prediction": saved.model.predict(batch.X, **routed)}
    estimator = saved.model[-1]
    if hasattr(estimator, "predict_experts"):
        matrix = saved.model[:-1].transform(batch.X) if len(saved.model) > 1 else batch.X
        for number, predictions in enumerate(estimator.predict_experts(matrix, **routed).T):
            columns[f"expert {number}"] = predictions
    elif saved.kind == "classification" and hasattr(saved.model, "predict_proba"):
        chances = saved.model.predict_proba(batch.X, **routed)
        for name, chance in zip(saved.model.classes_, chances.T, strict=True):
            columns[f"probability {name}"] = chance
    predictions = pandas().DataFrame(columns)
    if batch.kept is None or not batch.kept.shape[1]:
        return predictions
    return pandas().concat([_renamed(batch.kept, columns), predictions], axis=1)


def _renamed(kept: Any, taken: Collection[str]) -> Any:
    """Columns of a table, by names that no column of the predictions has."""
    names = {name: name for name in kept.columns}
    for name in names:
        while names[name] in taken or list(names.values()).count(names[name]) > 1:
            names[name] += " in the table"
    return kept.rename(columns=names)


class _Tally:
    """Predicts batch by batch, and scores the predictions where the table has the targets."""

    def __init__(self, saved: Saved) -> None:
        self._saved = saved
        self.source = ""
        self.n_rows = self._n_known = 0
        # Right predictions, or squared errors; mean of the targets, and squares about it.
        self._sum = self._mean = self._squares = 0.0

    def predict(self, batch: Batch) -> Any:
        """The predictions of a batch, as a frame."""
        frame = _predictions(self._saved, batch)
        self.source, y = batch.source, batch.y
        self.n_rows += len(frame)
        if y is None:
            return frame
        predictions = frame["prediction"].to_numpy()
        before, self._n_known = self._n_known, self._n_known + y.shape[0]
        if self._saved.kind == "classification":
            self._sum += float((y == predictions).sum())
            return frame
        self._sum += float(((y - predictions) ** 2).sum())
        apart, share = float(y.mean()) - self._mean, y.shape[0] / self._n_known
        self._squares += float(((y - y.mean()) ** 2).sum()) + before * share * apart**2
        self._mean += share * apart
        return frame

    def scores(self) -> dict[str, float]:
        """Accuracy, or R2; none where a target is missing."""
        if not self._n_known or self._n_known < self.n_rows:
            return {}
        if self._saved.kind == "classification":
            return {"accuracy": self._sum / self._n_known}
        return {"R2": 1.0 - self._sum / self._squares} if self._squares > 0.0 else {}
