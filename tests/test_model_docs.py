"""docs/model.md against the code, in both directions: what it names exists, and what must be named is."""

import importlib
import inspect
import re
from dataclasses import fields
from pathlib import Path

import pytest

from tdc_cli.model import conditionals, kernels
from tdc_cli.model.state import Priors, State

TEXT = (Path(__file__).parent.parent / "docs" / "model.md").read_text(encoding="utf-8")
# The labels of the model's and the inference's equations, in the order of the paper.
LABELS = (
    "0 1 2 3 7 9 10 11 12 13 4 5 6 14 15 13-1 14-1 15-1 16 17 18 19 19-0 19-1 19-2 20 21 21-1 22 23 24 26 27 27-1 29 "
    "30 30-1 32 33 33-1 35 36 36-1 38 39 39-1 41 42 43 44 45 46 50 51"
)
MODEL = (
    "coherence",
    "conditionals",
    "fit",
    "kernels",
    "mixture",
    "posterior",
    "problem",
    "rank",
    "sampler",
    "state",
)
CLASSES = {"State": "tdc_cli.model.state", "Priors": "tdc_cli.model.state", "Observed": "tdc_cli.tensor"}


def section(title):
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", TEXT, re.S | re.M)
    assert found, f"docs/model.md has no section '{title}'"
    return found[1]


def rows(title):
    """Cells of the first table of a section, without its head."""
    lines = [line for line in section(title).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


NAMES = sorted(set(re.findall(r"`(\w+\.\w+)`", TEXT)))


def exists(name):
    owner, attribute = name.split(".")
    if owner in CLASSES:
        cls = getattr(importlib.import_module(CLASSES[owner]), owner)
        return attribute in {f.name for f in fields(cls)} or hasattr(cls, attribute)
    if owner.startswith("test_"):
        return callable(getattr(importlib.import_module(owner), attribute, None))
    elsewhere = {"tensor": "tdc_cli.tensor", "joint": "joint"}
    module = elsewhere.get(owner, f"tdc_cli.model.{owner}" if owner in MODEL else None)
    assert module, f"docs/model.md names {name}, of a module that this test does not know"
    return hasattr(importlib.import_module(module), attribute)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_named_exists(name):
    assert exists(name)


def test_a_name_that_is_made_up_does_not_exist():
    assert not exists("conditionals.weights_prior")
    assert not exists("State.lambdas")


@pytest.mark.parametrize("module", [conditionals, kernels], ids=["conditionals", "kernels"])
def test_every_public_function_is_named(module):
    functions = {name: getattr(f, "py_func", f) for name, f in vars(module).items() if name[0] != "_"}
    own = [name for name, f in functions.items() if inspect.isfunction(f) and f.__module__ == module.__name__]
    assert len(own) > 5
    named = {name.split(".")[1] for name in NAMES if name.split(".")[0] == module.__name__.rsplit(".", 1)[1]}
    assert sorted(named) == sorted(own)


def test_every_equation_has_a_row():
    told = {label for row in rows("Equation, function, test") for label in re.findall(r"\beq(\d+(?:-\d+)?)", row[0])}
    assert told == set(LABELS.split())


def test_every_function_of_an_equation_has_a_test():
    for equation, _, function, test in rows("Equation, function, test"):
        assert "`" not in function or "`test_" in test, equation


@pytest.mark.parametrize("cls", [State, Priors])
def test_every_field_has_a_symbol(cls):
    told = {name for row in rows("Symbols") for name in re.findall(rf"`{cls.__name__}\.(\w+)`", row[1])}
    assert {f.name for f in fields(cls)} <= told


def test_every_erratum_names_what_is_meant():
    for row in rows("Errata"):
        assert len(row) == 3 and all(row), row
