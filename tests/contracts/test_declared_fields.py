"""What every part that reads batches promises: it declares the fields that it reads.

The view refuses an undeclared field as it is read; a read that no test reaches is seen here, in the source.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator

import pytest

from pipelines.components import Component
from pipelines.vocabulary import Field
from tests.contracts.families import build, members

READING = {
    "attention": ("visible",),
    "corruptions": ("apply",),
    "heads": ("signals", "answer"),
    "objectives": ("rewrite", "loss", "counts"),
}
"""Family → the methods of its members that read batches."""
DECLARATIONS = ("needs", "needs_fields", "may_read")
MEMBERS = [(family, name) for family in READING for name in members(family)]


def names_read(module: str) -> Iterator[str]:
    """`INPUT_IDS` for each `batch[Field.INPUT_IDS]`, `batch.get(Field.INPUT_IDS)` and `Field.INPUT_IDS in batch`."""
    for node in ast.walk(ast.parse(inspect.getsource(sys.modules[module]))):
        match node:
            case ast.Subscript(value=batch, slice=field, ctx=ast.Load()):
                pass
            case ast.Call(func=ast.Attribute(value=batch, attr="get"), args=[field, *_]):
                pass
            case ast.Compare(left=field, ops=[ast.In() | ast.NotIn()], comparators=[batch]):
                pass
            case _:
                continue
        if ast.unparse(batch).endswith("batch") and ast.unparse(field).startswith("Field."):
            yield ast.unparse(field).removeprefix("Field.")


def declared(part: object) -> frozenset[Field]:
    """What a class or a part declares; a class whose parts declare by their options declares nothing."""
    values = (getattr(part, name, None) for name in DECLARATIONS)
    return frozenset().union(*(value for value in values if isinstance(value, frozenset)))


@pytest.mark.parametrize(("family", "name"), MEMBERS)
def test_a_part_declares_what_its_source_reads(family: str, name: str) -> None:
    member = members(family)[name]
    in_module = [
        value
        for value in vars(sys.modules[member.__module__]).values()
        if inspect.isclass(value) and issubclass(value, Component) and value.__module__ == member.__module__
    ]
    known = declared(build(member)).union(*map(declared, in_module))
    missing = {Field[read] for read in names_read(member.__module__)} - known
    assert not missing, (
        f"{member.__module__} reads {', '.join(sorted(missing))} of a batch: add it to `needs`/`needs_fields` if every "
        "batch must have it, or to `may_read` if not"
    )


@pytest.mark.parametrize("family", READING)
def test_the_methods_of_every_member_read_declared_batches(family: str) -> None:
    for name, member in members(family).items():
        for method in READING[family]:
            own = next(cls for cls in member.__mro__ if method in cls.__dict__)
            # what the family itself defines reads nothing
            assert own is member.family() or hasattr(getattr(member, method), "__wrapped__"), f"{name}.{method}"
