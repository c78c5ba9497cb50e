"""A loss answers for itself: nothing outside ``losses/`` asks for its class or its name."""

import ast
from pathlib import Path

import pytest

import clustruct
from clustruct.losses import LOSSES

ROOT = Path(clustruct.__file__).parent
NAMES = {*LOSSES, "multinomial"}


def is_class_of_loss(node):
    """Whether an expression names the class of a loss, or a tuple of such."""
    names = {sub.id for sub in ast.walk(node) if isinstance(sub, ast.Name)}
    names |= {sub.attr for sub in ast.walk(node) if isinstance(sub, ast.Attribute)}
    return any(name.endswith("Loss") for name in names)


def is_loss(node):
    """Whether an expression is called a loss, such as ``model.loss``."""
    name = getattr(node, "attr", getattr(node, "id", ""))
    return name in ("loss", "likelihood") or (isinstance(node, ast.Call) and is_loss(node.func))


def is_name_of_loss(node):
    """Whether an expression is the name of a loss, or holds one."""
    constants = {sub.value for sub in ast.walk(node) if isinstance(sub, ast.Constant)}
    return bool(constants & NAMES)


def questions(source):
    """Lines in which code asks what a loss is."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in (
            "isinstance",
            "issubclass",
        ):
            if is_class_of_loss(node.args[1]):
                yield node.lineno
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            asks = any(map(is_loss, sides)) and any(map(is_name_of_loss, sides))
            if asks or any(is_class_of_loss(side) for side in sides):
                yield node.lineno
        elif isinstance(node, ast.Match):
            if is_loss(node.subject):
                yield node.lineno
        elif isinstance(node, ast.Subscript):
            if isinstance(node.value, ast.Name | ast.Attribute) and is_loss(node.slice):
                yield node.lineno  # a table of what to do for each loss
        elif isinstance(node, ast.Dict) and any(
            isinstance(key, ast.Constant) and key.value in NAMES for key in node.keys
        ):
            yield node.lineno


def test_nobody_asks_what_a_loss_is():
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sorted(ROOT.rglob("*.py"))
        if "losses" not in path.relative_to(ROOT).parts
        for line in questions(path.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    "code",
    [
        "if isinstance(loss, SquaredLoss): pass",
        "ok = not isinstance(self.loss, (losses.HuberLoss, LogisticLoss))",
        "if self.loss == 'logistic': pass",
        "x = 1 if model.loss != 'huber' else 2",
        "if loss in ('squared', 'huber'): pass",
        "if likelihood == 'logistic': pass",
        "if type(loss) is HuberLoss: pass",
        "name = TABLE[self.loss]",
        "TABLE = {'squared': 1, 'huber': 2}",
        "match self.loss:\n    case 'squared': pass",
        "if get_params().loss == 'squared': pass",
    ],
)
def test_the_search_catches(code):
    assert list(questions(code))


@pytest.mark.parametrize(
    "code",
    [
        "if loss.quadratic and isinstance(objective, QuadraticObjective): pass",
        "raise ValueError(f'loss={self.loss!r}')",
        "loss = losses[0]",
        "if loss < best_loss: pass",
        "if loss is None: pass",
    ],
)
def test_the_search_lets_pass(code):
    assert not list(questions(code))
