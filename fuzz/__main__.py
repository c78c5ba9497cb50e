"""Run the fuzzer: ``python -m fuzz --minutes 60 --seed 1 --only kernels --jobs 2``."""

import os

# Before NumPy is loaded: cases are small, and workers are processes.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "ARROW_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse  # noqa: E402
import secrets  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
import warnings  # noqa: E402
from collections.abc import Sequence  # noqa: E402

from fuzz.cases import NAMES, Target, keep_failure, load_target  # noqa: E402
from fuzz.driver import Budget, Tally, run_target  # noqa: E402
from fuzz.shrinking import minimised  # noqa: E402

# Failures of so many kinds are made smaller and kept, for each target.
MOST_KEPT = 12


def main(argv: Sequence[str] | None = None) -> int:
    """Run targets one after the other, print a table, and return 1 if something new failed."""
    args = _parser().parse_args(argv)
    warnings.simplefilter("ignore")
    seed = secrets.randbelow(2**31) if args.seed is None else args.seed
    names = [name for name in NAMES if not args.only or name in args.only.split(",")]
    if not names:
        print(f"--only {args.only} names no target. There are: {', '.join(NAMES)}.")
        return 2
    length = "a short run" if args.short else f"{args.minutes:g} minutes"
    print(f"seed {seed}, {length}, {args.jobs} jobs: {', '.join(names)}", flush=True)
    targets = [load_target(name) for name in names]
    budgets = _budgets(targets, args)
    tallies = []
    for target, budget in zip(targets, budgets, strict=True):
        target.prepare()
        tally = run_target(target, seed, budget, args.jobs)
        tallies.append(tally)
        print(_line(tally), flush=True)
        _keep(target, tally, seed, keep=not args.short)
    print(_table(tallies))
    return int(any(tally.failures for tally in tallies))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="length of the run")
    parser.add_argument("--seed", type=int, help="of all cases; a random one unless given")
    parser.add_argument("--only", default="", help="targets, with commas between them")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="child processes")
    parser.add_argument("--short", action="store_true", help="the few cases of `make test`")
    return parser


def _budgets(targets: Sequence[Target], args: argparse.Namespace) -> list[Budget]:
    """The share of each target."""
    if args.short:
        return [Budget(cases=target.short) for target in targets]
    total = sum(target.share for target in targets)
    return [Budget(seconds=60.0 * args.minutes * target.share / total) for target in targets]


def _keep(target: Target, tally: Tally, seed: int, *, keep: bool) -> None:
    """Make failures smaller, write them to files and print them."""
    for failure in list(tally.failures.values())[:MOST_KEPT]:
        began = time.monotonic()
        small = minimised(target, failure) if keep else failure
        print(f"\n{failure.target}, case {failure.index} of seed {seed}: {failure.what}")
        print(failure.details.strip()[-2000:])
        if keep:
            path = keep_failure(small, seed)
            print(f"kept as {path} ({time.monotonic() - began:.0f} s)", flush=True)
        else:
            print(str(small.recipe)[:2000])


def _line(tally: Tally) -> str:
    outcomes = ", ".join(f"{count:,} {name}" for name, count in tally.outcomes.most_common())
    rate = tally.n_cases / max(tally.spent, 1e-9)
    return (
        f"{tally.name}: {tally.n_cases:,} cases in {tally.seconds:.0f} s and {tally.spent:.0f} s "
        f"of processor time, {rate:.0f} a second of it: {outcomes}"
    )


def _table(tallies: Sequence[Tally]) -> str:
    """A table in Markdown, for the documentation."""
    lines = [
        "",
        "| target | cases | processor time, s | a second of it | slowest case, s | failed, kinds | "
        "known |",
        "|---|---|---|---|---|---|---|",
    ]
    for tally in tallies:
        rate = tally.n_cases / max(tally.spent, 1e-9)
        known = sum(tally.known.values())
        failed = f"{tally.outcomes['failed']:,}, {len(tally.failures)}"
        numbers = f"{tally.n_cases:,} | {tally.spent:,.0f} | {rate:,.1f} | {tally.slowest:.2f}"
        lines.append(f"| {tally.name} | {numbers} | {failed} | {known:,} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
