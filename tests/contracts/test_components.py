"""What every component of every family promises."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys

import pytest
from pydantic import ValidationError

from pipelines.components import Component
from pipelines.parts.corruptions import Corruption
from pipelines.parts.heads import Head
from pipelines.parts.objectives import Objective
from pipelines.recipe.catalogue import FAMILIES, parameters
from pipelines.vocabulary import Field, Signal
from tests.contracts.families import EVERY, build, members, required

every_component = pytest.mark.parametrize(("package", "name"), EVERY)


def member(package: str, name: str) -> type[Component]:
    return members(package)[name]


@every_component
def test_is_frozen(package: str, name: str) -> None:
    value = build(member(package, name))
    for key in type(value).model_fields:
        with pytest.raises(ValidationError, match="frozen"):
            setattr(value, key, getattr(value, key))


@every_component
def test_survives_json(package: str, name: str) -> None:
    value = build(member(package, name))
    told = json.loads(json.dumps(value.model_dump(mode="json")))
    assert told.get("name", value.default_name if value.name_optional else "") == name
    assert value.family().model_validate(told) == value


@every_component
def test_is_built_by_its_family_from_a_word_or_a_mapping(package: str, name: str) -> None:
    cls = member(package, name)
    needed = required(package, name)
    assert type(cls.family().model_validate({"name": name, **needed})) is cls
    if not needed:
        assert cls.family().model_validate(name) == build(cls)


@every_component
def test_refuses_a_key_it_does_not_know(package: str, name: str) -> None:
    cls = member(package, name)
    known = next((field.alias or key for key, field in cls.model_fields.items()), None)
    wrong = f"{known}x" if known else "xx"
    with pytest.raises(ValidationError, match=f"has no key '{wrong}'") as told:
        cls.family().model_validate({"name": name, **required(package, name), wrong: 1})
    if known:
        assert f"Did you mean '{known}'?" in str(told.value)


@every_component
def test_says_what_it_does_and_where_it_is_from(package: str, name: str) -> None:
    cls = member(package, name)
    own = cls.__dict__.get("__doc__") or ""
    assert own.strip().split("\n\n")[0].endswith("."), f"{cls.__name__}: its docstring begins with a whole sentence"
    module = importlib.import_module(cls.__module__)
    assert module.__doc__, f"{cls.__module__}: say what the module is"
    # architectures have the names of transformers, of which one has a hyphen
    assert cls.__module__.rpartition(".")[2] == name.replace("-", "_"), (
        f"{name}: a component lives in a module of its name"
    )
    if cls.paper:
        published = cls.paper.startswith(("arXiv:", "doi:")) or re.search(r"\b(19|20)\d\d\b", cls.paper)
        assert published, f"{name}: arXiv:…, doi:…, or authors and year"


@every_component
def test_every_parameter_is_documented(package: str, name: str) -> None:
    undocumented = [parameter.name for parameter in parameters(member(package, name)) if not parameter.summary]
    assert not undocumented, f"{name}: write a docstring under each of these"


@pytest.mark.parametrize("package", FAMILIES)
def test_an_unknown_name_is_answered_with_the_nearest_and_the_list(package: str) -> None:
    known = members(package)
    first = sorted(known)[0]
    family = known[first].family()
    with pytest.raises(ValidationError) as told:
        family.model_validate(first[:-1])
    assert f"Did you mean '{first}'?" in str(told.value) and f"Known: {', '.join(sorted(known))}." in str(told.value)
    for nonsense in (7, ["x"], None) if family.name_optional else (7, ["x"], {"rate": 1}, None):
        with pytest.raises(ValidationError, match="expected a name or a mapping with the key 'name'"):
            family.model_validate(nonsense)


@pytest.mark.parametrize("package", FAMILIES)
def test_a_name_is_given_once(package: str) -> None:
    name, taken = next(iter(members(package).items()))
    with pytest.raises(TypeError, match=f"'{name}' already names {taken.__module__}"):
        type("Second", (taken.family(),), {"__module__": __name__}, name=name)
    assert members(package)[name] is taken


def test_components_speak_only_the_closed_vocabulary() -> None:
    for cls in members("corruptions").values():
        assert issubclass(cls, Corruption)
        assert all(isinstance(word, Field) for word in cls.needs | cls.provides) and cls.provides
    for cls in members("heads").values():
        assert issubclass(cls, Head)
        assert all(isinstance(word, Field) for word in cls.needs) and all(isinstance(w, Signal) for w in cls.provides)
    for cls in members("objectives").values():
        assert issubclass(cls, Objective)
        assert all(isinstance(word, Field) for word in cls.needs_fields)
        assert all(isinstance(word, Signal) for word in cls.needs_signals)
        # one that compares weights reads no signal of a batch
        assert cls.needs_signals or cls.build is not Objective.build


def test_building_every_component_starts_no_torch() -> None:
    code = (
        "import sys\nfrom tests.contracts.families import EVERY, build, members\n"
        "for package, name in EVERY: build(members(package)[name])\n"
        "print(sorted({'torch', 'transformers', 'sklearn', 'onnxruntime'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
