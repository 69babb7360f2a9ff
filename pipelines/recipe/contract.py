"""The contract of every component, whatever its family: what `cursus check` holds a project's own parts to.

for problem in violations(Focal): print(problem)
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from pipelines.components import Component
from pipelines.recipe.catalogue import parameters


def violations(member: type[Component], options: dict[str, Any] | None = None) -> Iterator[str]:
    """Sentences on what a member of a family breaks; `options` are those that it cannot be built without."""
    yield from _documentation(member)
    required = [name for name, field in member.model_fields.items() if field.is_required()]
    if missing := [name for name in required if name not in (options or {})]:
        yield f"has no default for {', '.join(missing)}, so that it cannot be tried; give each a default"
        return
    try:
        value = member.model_validate(options or {})
    except ValidationError as error:
        first = error.errors()[0]
        yield f"cannot be built with its defaults: {'.'.join(map(str, first['loc']))}: {first['msg']}"
        return
    yield from _behaviour(member, value, options or {})


def _documentation(member: type[Component]) -> Iterator[str]:
    own = member.__dict__.get("__doc__") or ""
    if not own.strip().split("\n\n")[0].endswith((".", "。")):
        yield "its class has no docstring that begins with a whole sentence"
    if not importlib.import_module(member.__module__).__doc__:
        yield "its module has no docstring that says what it is"
    if member.__module__.rpartition(".")[2] != member.name.replace("-", "_"):
        yield f"is called {member.name!r} in the file {member.__module__.rpartition('.')[2]}.py; give both one name"
    published = member.paper.startswith(("arXiv:", "doi:")) or re.search(r"\b(19|20)\d\d\b", member.paper)
    if member.paper and not published:
        yield f"its paper {member.paper!r} is neither arXiv:… nor doi:…, and has no year"
    for parameter in parameters(member):
        if not parameter.summary:
            yield f"its option {parameter.name!r} has no docstring under it"


def _behaviour(member: type[Component], value: Component, options: dict[str, Any]) -> Iterator[str]:
    family = member.family()
    for key in type(value).model_fields:
        try:
            setattr(value, key, getattr(value, key))
        except ValidationError:
            continue
        yield f"its option {key!r} can be changed after it is built; leave model_config to the family"
    written = json.loads(json.dumps(value.model_dump(mode="json")))
    if family.model_validate(written) != value:
        yield "is another one when it is written as JSON and read again"
    if type(family.model_validate({"name": member.name, **options})) is not member:
        yield f"its family builds another class for the name {member.name!r}"
    try:
        family.model_validate({"name": member.name, **options, "no_such_option": 1})
    except ValidationError:
        return
    yield "accepts options that it does not have"
