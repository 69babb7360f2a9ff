"""The registry: how names in a recipe become objects.

    class Objective(Component): ...                          # a family
    class MaskedLM(Objective, name="masked_lm"): ...         # a member: subclassing registers it
    Objective.model_validate("masked_lm")                    # a name gives the member with its defaults
    Objective.model_validate({"name": "masked_lm", ...})     # a mapping gives it with options; unknown keys are errors

A component is both configuration and implementation: a frozen pydantic model with methods. It holds no tensor and does
no I/O when it is constructed, and its module imports torch only inside methods, so that a recipe can be read, checked
and fingerprinted without importing torch.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
import re
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    SerializerFunctionWrapHandler,
    ValidationError,
    ValidatorFunctionWrapHandler,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError

UNKNOWN_KEY = "unknown_key"
"""Type of the validation error that `refuse_unknown_keys` raises; its context holds the `key`."""
IMMENSE = "immense"
"""Type of the validation error that `refuse_immense` raises; its context holds the `key`."""
LARGEST = 10**9
"""Largest value of an option that does not state an upper bound of its own: no machine holds a layer so wide."""


class Component(BaseModel):
    """A frozen, named value that a recipe can name. A family subclasses this once; members subclass the family."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: ClassVar[str]
    paper: ClassVar[str] = ""
    """Publication of the method, as `arXiv:…`, `doi:…` or an author-year reference; shown in the catalogue."""
    default_name: ClassVar[str] = ""
    """Name of the family's default member; empty where a recipe must name one."""
    name_optional: ClassVar[bool] = False
    """Whether a mapping without a name is the default member, whose dump has no name either."""
    members: ClassVar[dict[str, type[Component]]]

    def __init_subclass__(cls, name: str | None = None, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if Component in cls.__bases__:
            cls.members = {}
        elif name is not None:
            if name in cls.members:
                raise TypeError(f"{cls.__module__}: {name!r} already names {cls.members[name].__module__}")
            cls.name = name
            cls.members[name] = cls

    @classmethod
    def family(cls) -> type[Component]:
        """The family this class belongs to: the direct subclass of Component among its ancestors."""
        return next(base for base in cls.__mro__ if Component in base.__bases__)

    @classmethod
    def default(cls) -> Self:
        """The family's default member with its default options."""
        return cls.model_validate(cls.default_name)

    @property
    def reads_files(self) -> tuple[Path, ...]:
        """Files whose content determines the component's behaviour: their digests are part of a stage's identity."""
        return ()

    @model_validator(mode="wrap")
    @classmethod
    def _dispatch(cls, value: Any, handler: ValidatorFunctionWrapHandler) -> Self:
        if Component not in cls.__bases__ or isinstance(value, cls):
            result: Self = handler(value)
            return result
        discover(cls.__module__)
        if isinstance(value, str):
            value = {"name": value}
        if cls.name_optional and isinstance(value, dict):
            value = {"name": cls.default_name, **value}
        if not isinstance(value, dict) or "name" not in value:
            raise ValueError(f"{class_words(cls)}: expected a name or a mapping with the key 'name', got {value!r}")
        value = dict(value)
        chosen = value.pop("name")
        if not isinstance(chosen, str):
            raise ValueError(f"the name of a {class_words(cls)} must be text, got {chosen!r}")
        member = cls.members.get(chosen)
        if member is None:
            raise ValueError(f"no {class_words(cls)} is called {chosen!r}.{did_you_mean(str(chosen), cls.members)}")
        keys = [field.alias or key for key, field in member.model_fields.items()]
        refuse_unknown_keys(f"{class_words(cls)} {chosen!r}", value, keys)
        refuse_immense(f"{class_words(cls)} {chosen!r}", value, member)
        try:
            return member.model_validate(value)  # type: ignore[return-value]
        except ValidationError as error:
            # one sentence for the caller, not a pydantic report nested in another
            first = error.errors()[0]
            where = "".join(f", {part}" for part in first["loc"][:1]) + "".join(f".{part}" for part in first["loc"][1:])
            message = first["msg"].removeprefix("Value error, ")
            raise ValueError(f"{class_words(cls)} {chosen!r}{where}: {message}") from None

    @model_serializer(mode="wrap")
    def _with_name(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        unnamed = self.name_optional and self.name == self.default_name
        return handler(self) if unnamed else {"name": self.name, **handler(self)}


def class_words(cls: type) -> str:
    """The name of a class as words: `task family` of TaskFamily."""
    return re.sub(r"(?<!^)(?=[A-Z])", " ", cls.__name__).lower()


def did_you_mean(word: str, known: Any) -> str:
    """Suffix of an error message: ` Did you mean 'masked_lm'? Known: …`, the closest known name and the list of all."""
    near = difflib.get_close_matches(word, list(known), n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"{hint} Known: {', '.join(sorted(known))}."


def listed(names: Any, most: int = 20) -> str:
    """Names for an error message: all, or the first ones and how many more there are."""
    every = [*names]
    left = len(every) - most
    return ", ".join(every) if left <= 1 else f"{', '.join(every[:most])} and {left:,} more"


def refuse_unknown_keys(what: str, value: Any, known: Any) -> None:
    """Raise a ValueError that names the first key of `value` not in `known`, and the closest one that is."""
    if isinstance(value, dict):
        for key in value:
            if key not in known:
                message = f"{what} has no key {key!r}.{did_you_mean(str(key), known)}"
                raise PydanticCustomError(UNKNOWN_KEY, "{message}", {"message": message, "key": str(key)})


@cache
def discover(package: str) -> None:
    """Import every module directly under `package`, the project's own among them, so that its components are
    registered. RecipeError, with file and line, for one of the project's own that cannot be imported."""
    from pipelines.components.own_parts import add_own_modules, own_error

    root = importlib.import_module(package)
    add_own_modules(root)
    for module in pkgutil.iter_modules(root.__path__, package + "."):
        try:
            importlib.import_module(module.name)
        except Exception as error:
            spec = module.module_finder.find_spec(module.name, None)
            if (known := own_error(spec.origin if spec is not None else None, error)) is None:
                raise
            raise known from error


def refuse_immense(what: str, value: Any, model: type[BaseModel]) -> None:
    """Raise a ValueError that names the first number of the mapping `value` beyond LARGEST, unless the field of
    `model` states an upper bound."""
    for key, given in value.items() if isinstance(value, dict) else ():
        field = model.model_fields.get(key)
        limits = [limit for limit in (field.metadata if field else ()) if hasattr(limit, "le") or hasattr(limit, "lt")]
        if isinstance(given, (int, float)) and abs(given) > LARGEST and not limits:
            message = f"{what}, {key}: {given:,} is too large; the most is {LARGEST:,}"
            raise PydanticCustomError(IMMENSE, "{message}", {"message": message, "key": str(key)})
