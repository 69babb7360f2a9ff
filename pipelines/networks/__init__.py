"""Networks that transformers does not have, each a `PreTrainedModel`. Modules here import torch; planning never imports
them."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache


@cache
def register() -> None:
    """Register the backbones of this package with the Auto classes of transformers, so that these open their folders.

    Every module with a backbone defines a function `register_auto_classes`. They are discovered instead of imported by
    name, so that the code of a backbone is part of the fingerprint of the stages that use it, and of no others.
    """
    for module in pkgutil.iter_modules(__path__, __name__ + "."):
        getattr(importlib.import_module(module.name), "register_auto_classes", lambda: None)()
