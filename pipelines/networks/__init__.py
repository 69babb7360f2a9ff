"""Our own networks, each a Hugging Face `PreTrainedModel`. Modules here import torch; nothing that plans imports them."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache


@cache
def register() -> None:
    """Let the Auto classes of transformers open the folders of our own bodies.

    Each module that holds one has a function `register_auto_classes`. They are found and not named here, so that the code of a body is
    part of the identity of the stages that use it, and of no other.
    """
    for module in pkgutil.iter_modules(__path__, __name__ + "."):
        getattr(importlib.import_module(module.name), "register_auto_classes", lambda: None)()
