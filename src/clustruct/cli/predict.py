"""``clustruct predict``: answers of a saved model."""

import argparse
from typing import TYPE_CHECKING, Any

from clustruct._console import Console
from clustruct.cli.messages import as_json
from clustruct.cli.options import add_command, add_table_options, output

if TYPE_CHECKING:
    from clustruct.cli.application import Rows, Saved

__all__ = ["add"]


def add(commands: Any) -> None:
    """Tell the parser of the command."""
    from clustruct.cli.streams import FORMATS

    parser = add_command(
        commands,
        "predict",
        run,
        "predict with a saved model, one line for each row of a table",
        "clustruct predict flats.clustruct new.csv --out rents.csv",
        "clustruct predict flats.clustruct new.csv | head",
    )
    parser.add_argument("model", metavar="MODEL", help="model file that `clustruct fit` wrote")
    add_table_options(parser, FORMATS)
    parser.add_argument(
        "--out",
        type=output,
        metavar="FILE",
        help="CSV, TSV, Parquet, Arrow or JSON lines file to write (default: CSV to standard "
        "output)",
    )


def run(args: argparse.Namespace, console: Console) -> None:
    """Load, read, predict, write."""
    with console.progress("reading"):
        from clustruct.cli.application import load_model, read_rows

        saved = load_model(args.model)
        rows = read_rows(saved, args, console)
    with console.progress("predicting"):
        answers = _answers(saved, rows)
        scores = _scores(saved, rows)
    if args.out is not None:
        from clustruct.cli.tables import write_table

        write_table(answers, args.out)
    if args.json:
        values = None if args.out is not None else answers.to_dict(orient="records")
        content = {
            "rows": len(answers),
            "out": None if args.out is None else str(args.out),
            "scores": scores,
            "predictions": values,
        }
        console.say(as_json(content))
        return
    if args.out is None:
        console.say(answers.to_csv(index=False).rstrip("\n"))
    else:
        console.say(f"Predictions of {len(answers)} rows: {args.out}")
    if scores:
        told = ", ".join(f"{name} {value:.4f}" for name, value in scores.items())
        console.note(f"clustruct: {rows.source} has the answers, too: {told}.")


def _answers(saved: "Saved", rows: "Rows") -> Any:
    """A column with the answer, one for each class or expert where there are any."""
    from clustruct.cli.tables import pandas

    routed = {} if rows.tasks is None else {"tasks": rows.tasks}
    columns = {"prediction": saved.model.predict(rows.X, **routed)}
    estimator = saved.model[-1]
    if hasattr(estimator, "predict_experts"):
        matrix = saved.model[:-1].transform(rows.X) if len(saved.model) > 1 else rows.X
        for number, answers in enumerate(estimator.predict_experts(matrix).T):
            columns[f"expert {number}"] = answers
    elif saved.kind == "classification" and hasattr(saved.model, "predict_proba"):
        chances = saved.model.predict_proba(rows.X, **routed)
        for name, chance in zip(saved.model.classes_, chances.T, strict=True):
            columns[f"probability {name}"] = chance
    return pandas().DataFrame(columns)


def _scores(saved: "Saved", rows: "Rows") -> dict[str, float]:
    """How good the answers are, where the table has the right ones."""
    if rows.y is None:
        return {}
    from sklearn.metrics import accuracy_score, r2_score

    routed = {} if rows.tasks is None else {"tasks": rows.tasks}
    answers = saved.model.predict(rows.X, **routed)
    if saved.kind == "classification":
        return {"accuracy": float(accuracy_score(rows.y, answers))}
    return {"R2": float(r2_score(rows.y, answers))} if len(answers) > 1 else {}
