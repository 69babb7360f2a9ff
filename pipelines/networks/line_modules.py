"""Modules of one line beside a backbone that other lines compute with as well.

    class Gate(ModulesOfLine):                      # what a strategy adds to the network of each line
        def __init__(self, network): …
            layer.register_forward_hook(self._gate)     # of the shared backbone; a bound method of this module
        def _gate(self, layer, inputs, output):
            return self.scale(output) if self.computes else output

A hook on a module of the backbone is called whichever line computes. The network of a line calls the backbone through
`BackboneOfLine`, which says so for the duration of the call, and a hook of another line then leaves everything as it
is. A network with a single head owns its backbone: its hooks always act.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from torch import nn

from pipelines.errors import RecipeError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_COMPUTING: ContextVar[object] = ContextVar("computing", default=None)
"""The `BackboneOfLine` that is called; of each thread, since threads may answer with several lines at once."""


class BackboneOfLine:
    """The shared `backbone` as one line calls it. Everything but the call is the backbone's own."""

    def __init__(self, backbone: nn.Module) -> None:
        self.backbone = backbone

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        before = _COMPUTING.set(self)
        try:
            return self.backbone(*arguments, **named)
        finally:
            _COMPUTING.reset(before)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "backbone":  # what copying looks up before there is a backbone
            raise AttributeError(name)
        return getattr(self.backbone, name)


class ModulesOfLine(nn.Module):
    """Base class of what a strategy adds to the network of a line: saved, trained and continued with the line's
    head."""

    def __init__(self) -> None:
        super().__init__()
        self._backbone: BackboneOfLine | None = None

    @property
    def computes(self) -> bool:
        """Whether the backbone computes for the line of these modules; a hook changes nothing where it does not."""
        return self._backbone is None or _COMPUTING.get() is self._backbone

    def add_to(self, network: PreTrainedModel, name: str) -> None:
        """Become the module `name` of the network of a line.

        Raises RecipeError where it has one, and where it has no backbone below a head.
        """
        prefix = network.base_model_prefix
        if network.base_model is network:
            raise RecipeError(
                f"{name}: {type(network).__name__} does not separate into a backbone and a head, beside which modules "
                "of a line would stand; use a head on a backbone"
            )
        if hasattr(network, name):
            raise RecipeError(
                f"{name}: the initial model already has such modules with other options; use the options they were "
                "made with, or start from a stage without them"
            )
        setattr(network, name, self)
        if prefix in network._modules:
            return
        if not isinstance(network.base_model, BackboneOfLine):
            network.__dict__[prefix] = BackboneOfLine(network.base_model)
        self._backbone = network.__dict__[prefix]
