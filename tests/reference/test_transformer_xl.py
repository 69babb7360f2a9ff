"""Transformer-XL against the equations of its paper in float64, token by token."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pipelines.networks.transformer_xl import TransformerXlConfig, TransformerXlForCausalLM, TransformerXlModel

SIZES = {"vocab_size": 30, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}


def network(memory: int) -> TransformerXlForCausalLM:
    torch.manual_seed(0)
    built = TransformerXlForCausalLM(TransformerXlConfig(**SIZES, memory_length=memory, initializer_range=0.4))
    return built.double().eval()


def by_the_paper(model: TransformerXlModel, ids: list[int], segment: int) -> np.ndarray:
    """§3.2 and §3.3, one query and one key at a time: [tokens, H] of the top layer."""
    w = {name: value.detach().numpy() for name, value in model.named_parameters()}
    heads, width = model.config.num_attention_heads, model.config.hidden_size
    size = width // heads
    below = w["embeddings.weight"][ids] * np.sqrt(width)

    def wave(distance: int) -> np.ndarray:
        angles = distance * 10000.0 ** -(np.arange(0, width, 2) / width)
        return np.concatenate([np.sin(angles), np.cos(angles)])

    def normed(x: np.ndarray) -> np.ndarray:
        return (x - x.mean()) / np.sqrt(x.var() + 1e-5)  # gains 1, biases 0

    for layer in range(model.config.num_hidden_layers):
        at = f"layers.{layer}."
        above = []
        for i in range(len(ids)):
            first = i - i % segment  # where the segment of i begins
            oldest = max(0, first - model.config.memory_length)
            whole = []
            for head in range(heads):
                part = slice(head * size, (head + 1) * size)
                q = w[at + "attention.query.weight"][part] @ below[i]
                u, v = w["content"][head, 0], w["position"][head, 0]
                scores, values = [], []
                for j in range(oldest, i + 1):
                    k = w[at + "attention.key.weight"][part] @ below[j]
                    r = w[at + "attention.distance.weight"][part] @ wave(i - j)
                    scores.append((q @ k + q @ r + u @ k + v @ r) / np.sqrt(size))
                    values.append(w[at + "attention.value.weight"][part] @ below[j])
                weights = np.exp(np.asarray(scores) - max(scores))
                whole.append((weights / weights.sum()) @ np.asarray(values))
            o = normed(below[i] + w[at + "attention.output.weight"] @ np.concatenate(whole))
            inner = np.maximum(w[at + "inner.weight"] @ o + w[at + "inner.bias"], 0)
            above.append(normed(o + w[at + "outer.weight"] @ inner + w[at + "outer.bias"]))
        below = np.asarray(above)
    return below


@pytest.mark.parametrize(("memory", "segment"), [(0, 4), (3, 4), (4, 4), (9, 4), (5, 2)])
@torch.no_grad()
def test_segments_with_memory_are_those_of_the_paper(memory: int, segment: int) -> None:
    model = network(memory).transformer
    ids = np.random.default_rng(0).integers(30, size=12).tolist()
    kept, found = None, []
    for begin in range(0, 12, segment):
        outputs = model(torch.tensor([ids[begin : begin + segment]]), memory=kept)
        kept = outputs.memory
        found.append(outputs.last_hidden_state[0])
        assert all(one.shape[1] == min(memory, begin + segment) for one in kept)
    expected = by_the_paper(model, ids, segment)
    np.testing.assert_allclose(torch.cat(found).numpy(), expected, atol=1e-6)  # sinusoids are float32
    assert memory == 0 or not np.allclose(by_the_paper(network(0).transformer, ids, segment), expected, atol=1e-3)


@torch.no_grad()
def test_enough_memory_is_a_row_without_cuts() -> None:
    """One layer reads the same whether a row is cut or not; more layers see further (§3.2)."""
    model = network(12).transformer
    ids = torch.randint(30, (2, 12), generator=torch.Generator().manual_seed(1))
    first = model(ids[:, :7])
    second = model(ids[:, 7:], memory=first.memory)
    whole = model(ids).last_hidden_state
    torch.testing.assert_close(torch.cat([first.last_hidden_state, second.last_hidden_state], 1), whole)


def test_no_gradient_goes_back_into_the_memory() -> None:
    model = network(8)
    ids = torch.randint(30, (2, 8), generator=torch.Generator().manual_seed(2))
    before = model(ids[:, :4])
    assert not any(one.requires_grad for one in before.memory)
    assert model.lm_head.weight is model.transformer.embeddings.weight
    logits = model(ids[:, 4:], memory=before.memory).logits
    logits.sum().backward()
    assert model.transformer.layers[0].attention.distance.weight.grad.abs().sum() > 0
