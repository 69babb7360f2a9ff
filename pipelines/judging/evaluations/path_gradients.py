"""Integrated gradients: the gradients of an answer along the path from an empty input to the text (Sundararajan et al.
2017, arXiv:1703.01365, eq. 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipelines.errors import RecipeError

if TYPE_CHECKING:
    from torch import Tensor, nn
    from transformers import PreTrainedModel


@dataclass(frozen=True)
class Attribution:
    """How much each token of a row contributes to the probability of a class."""

    tokens: Tensor
    """float32 [L]: contribution of each token; 0 for those that the empty input has too."""
    difference: float
    """Probability of the class in the row minus that in the empty input, which the contributions approximate in sum
    (completeness, Sundararajan et al. 2017, proposition 1)."""

    @property
    def error(self) -> float:
        """Absolute difference between the sum of the contributions and what they must add up to."""
        return abs(float(self.tokens.sum()) - self.difference)


def integrated_gradients(
    network: PreTrainedModel, ids: Tensor, frame: Tensor, target: int, steps: int, name: str
) -> Attribution:
    """Contributions of the tokens `ids` int64 [L] to the probability of class `target`.

    The empty input has the embeddings of the tokens where `frame` bool [L] is true, of the special tokens, and zeros in
    place of all others (the paper's baseline for text, §3). The path is straight, and its integral the mean of the
    gradients at the middles of `steps` equal parts. Raises RecipeError, which names the model as `name`, for a network
    without one embedding for each token.
    """
    import torch

    middles = (torch.arange(steps) + 0.5) / steps
    ends = torch.tensor([0.0, 1.0])
    empty, whole = _probabilities(network, ids, frame, ends, target, name)[0].tolist()
    probabilities, point, embeddings = _probabilities(network, ids, frame, middles, target, name)
    (gradient,) = torch.autograd.grad(probabilities.sum(), point)
    contributions = (embeddings[0] * gradient.mean(0)).sum(-1)
    return Attribution(contributions.masked_fill(frame, 0.0), whole - empty)


def _probabilities(
    network: PreTrainedModel, ids: Tensor, frame: Tensor, factors: Tensor, target: int, name: str
) -> tuple[Tensor, Tensor, Tensor]:
    """[S] probabilities of the class where the embeddings are multiplied by each of `factors` [S]; these embeddings
    [S, L, E], on which the probabilities depend; and the embeddings before."""
    import torch

    calls: list[tuple[Tensor, Tensor]] = []

    def scaled(module: nn.Module, inputs: Any, output: Any) -> Tensor:
        if not isinstance(output, torch.Tensor) or output.shape[:2] != (len(factors), len(ids)) or output.dim() != 3:
            raise _refusal(name)
        factor = torch.where(frame, torch.ones(()), factors[:, None])
        point = (output.detach() * factor[:, :, None]).requires_grad_()
        calls.append((point, output.detach()))
        return point

    try:
        embedding = network.get_input_embeddings()
    except NotImplementedError:
        raise _refusal(name) from None
    handle = embedding.register_forward_hook(scaled)
    try:
        rows = ids.expand(len(factors), -1)
        logits = network(input_ids=rows, attention_mask=torch.ones_like(rows)).logits
    finally:
        handle.remove()
    if len(calls) != 1:
        raise _refusal(name)
    ((point, embeddings),) = calls
    return logits.float().softmax(-1)[:, target], point, embeddings


def _refusal(name: str) -> RecipeError:
    return RecipeError(
        f"evaluation attribution: {name} does not look up one embedding for each token, so that there is no path from "
        "an empty input; leave this stage out"
    )
