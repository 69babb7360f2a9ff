"""The kinds of fault, discovered from the modules of this package."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

from benchmarks.faults.fault import Fault


def kinds() -> dict[str, Fault]:
    """All kinds of this package, by name."""
    kinds_by_name = {}
    for module in pkgutil.iter_modules(__path__):
        imported = importlib.import_module(f"{__name__}.{module.name}")
        for _, one in inspect.getmembers(imported, inspect.isclass):
            if issubclass(one, Fault) and one.__module__ == imported.__name__ and not inspect.isabstract(one):
                kinds_by_name[one.name] = one()
    return dict(sorted(kinds_by_name.items()))
