"""The bottom of BERT and RoBERTa as one function beside float64, and beside the modules that it stands for."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import BertConfig
from transformers.models.bert.modeling_bert import BertEmbeddings
from transformers.models.electra.modeling_electra import ElectraEmbeddings
from transformers.models.roberta.modeling_roberta import RobertaEmbeddings

from pipelines.errors import RecipeError
from pipelines.networks.channel_embeddings import MODULE, ChannelEmbedding, ChannelTables
from pipelines.parts.accelerators.cpu_kernels.dropout import draw_dropout
from pipelines.parts.accelerators.cpu_kernels.embedding import collect_row_gradients
from pipelines.parts.accelerators.cpu_kernels.swapping import KERNEL_MODULES, with_block
from pipelines.parts.embeddings.boxes import BoxEmbedding
from pipelines.parts.embeddings.languages import LanguageEmbedding
from tests.pipelines.parts.accelerators.cpu_kernels.closeness import close, same_on_any_threads
from tests.pipelines.parts.accelerators.cpu_kernels.graph import functions
from tests.pipelines.parts.accelerators.cpu_kernels.test_blocks import said

TABLES = ("word_embeddings", "token_type_embeddings", "position_embeddings")
HEIGHT, TYPES, POSITIONS = 70, 3, 40


def made(kind: Callable[[BertConfig], nn.Module] = BertEmbeddings, width: int = 48, rate: float = 0.0) -> nn.Module:
    """Embeddings of random weights, as a network has them that the kernels were given to."""
    torch.manual_seed(1)
    module = kind(
        BertConfig(
            vocab_size=HEIGHT, hidden_size=width, embedding_size=width, type_vocab_size=TYPES, pad_token_id=2,
            max_position_embeddings=POSITIONS, hidden_dropout_prob=rate,
        )
    ).train()  # fmt: skip
    for weight in module.parameters():
        nn.init.normal_(weight, mean=1.0 if weight.dim() == 1 else 0.0, std=0.3)
    for child in module.modules():
        child.__class__ = with_block(KERNEL_MODULES.get(type(child), type(child)))
    return module


def read(*shape: int) -> tuple[Tensor, Tensor, Tensor]:
    """Ids of tokens, types and positions."""
    ids, kinds, places = (torch.randint(below, shape) for below in (HEIGHT, TYPES, POSITIONS))
    ids.view(-1)[0] = 2
    return ids, kinds, places


def mask_of(module: nn.Module, seed: int, *given: Tensor | None) -> Tensor:
    """[B, L, W]: what it keeps with a seed, as seen where all that it could drop is 1."""
    plain = copy.deepcopy(module)
    nn.init.zeros_(plain.LayerNorm.weight)  # type: ignore[arg-type, union-attr]
    nn.init.ones_(plain.LayerNorm.bias)  # type: ignore[arg-type, union-attr]
    torch.manual_seed(seed)
    return (said(plain, *given) != 0).double()


@pytest.mark.parametrize("rate", [0.0, 0.3])
@pytest.mark.parametrize("width", [16, 48, 144])
@pytest.mark.parametrize("shape", [(1, 1), (3, 30), (5, 40)])
@pytest.mark.parametrize("told", ["ids alone", "all", "positions of all texts"])
def test_sum(rate: float, width: int, shape: tuple[int, int], told: str) -> None:
    module = made(width=width, rate=rate)
    ids, kinds, places = read(*shape)
    given: tuple[Tensor | None, ...] = {
        "ids alone": (ids, None, None), "all": (ids, kinds, places), "positions of all texts": (ids, kinds, places[:1]),
    }[told]  # fmt: skip
    torch.manual_seed(5)
    ours = said(module, *given)
    assert functions(ours) >= {"EmbeddingSumFunctionBackward"} and ours.dtype is torch.bfloat16
    outer = torch.randn(ours.shape).bfloat16()
    ours.backward(outer)
    weights = {name: one.detach().double().requires_grad_() for name, one in module.named_parameters()}
    asked = (
        ids,
        torch.zeros_like(ids) if given[1] is None else kinds,
        torch.arange(shape[1]) if given[2] is None else given[2],
    )
    added = sum(
        functional.embedding(one, weights[f"{name}.weight"], padding_idx=2 if name == "word_embeddings" else None)
        for name, one in zip(TABLES, asked, strict=True)
    )
    assert isinstance(added, Tensor)
    normalised_with_residual = functional.layer_norm(
        added, (width,), weights["LayerNorm.weight"], weights["LayerNorm.bias"], 1e-12
    )
    kept = mask_of(module, 5, *given)
    if kept.numel() > 1000:
        assert kept.mean().item() == pytest.approx(1 - rate, abs=0.03)
    wanted = normalised_with_residual * kept * draw_dropout(rate).scale
    wanted.backward(outer.double())
    close(ours, wanted, torch.bfloat16)
    for name, one in module.named_parameters():
        close(one.grad, weights[name].grad, torch.float32, more=20)
    assert module.word_embeddings.weight.grad is not None  # type: ignore[union-attr]
    assert not module.word_embeddings.weight.grad[2].any(), "padding learns nothing"  # type: ignore[index, union-attr]


@pytest.mark.parametrize("kind", [BertEmbeddings, RobertaEmbeddings, ElectraEmbeddings])
def test_it_says_what_the_modules_say(kind: Callable[[BertConfig], nn.Module]) -> None:
    module = made(kind)
    ids, kinds, _ = read(4, 20)
    ids[1, 12:] = 2
    ours = said(module, ids, kinds)
    assert functions(ours) >= {"EmbeddingSumFunctionBackward"}
    module.eval()  # as those of a network that does not train
    theirs = said(module, ids, kinds)
    assert "EmbeddingSumFunctionBackward" not in functions(theirs)
    close(ours, theirs, torch.bfloat16)


@pytest.mark.parametrize("told", [True, False])
def test_rows_go_where_an_optimizer_wants_them(told: bool) -> None:
    module = made()
    given = read(3, 30) if told else (read(3, 30)[0],)
    outer = torch.randn(3, 30, 48).bfloat16()
    said(module, *given).backward(outer)
    apart = {name: collect_row_gradients(module.get_submodule(name).weight) for name in TABLES}
    dense = {name: module.get_submodule(name).weight.grad.clone() for name in TABLES}
    module.zero_grad()
    said(module, *given).backward(outer)
    for name in TABLES:
        gradient = apart[name].grad
        assert gradient is not None and gradient.is_sparse and module.get_submodule(name).weight.grad is None
        close(gradient.to_dense(), dense[name], torch.float32, more=4)


def test_what_does_not_train_has_no_gradient() -> None:
    module = made()
    module.token_type_embeddings.weight.requires_grad_(False)  # type: ignore[operator, union-attr]
    module.LayerNorm.bias.requires_grad_(False)  # type: ignore[operator, union-attr]
    said(module, *read(2, 9)).float().sum().backward()
    learns = {name for name, one in module.named_parameters() if one.grad is not None}
    assert learns == {"word_embeddings.weight", "position_embeddings.weight", "LayerNorm.weight"}


@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("wrong", [-1, 70])
def test_an_id_without_a_row_is_refused(which: int, wrong: int) -> None:
    given = read(3, 30)
    given[which][2, 17] = wrong
    low, high = min(wrong, int(given[which].min())), max(wrong, int(given[which].max()))
    rows = (HEIGHT, TYPES, POSITIONS)[which]
    with pytest.raises(IndexError, match=f"ids from {low} to {high}, in an embedding of {rows} rows"):
        said(made(), *given)


def test_a_text_longer_than_its_positions_is_refused_as_before() -> None:
    with pytest.raises(RuntimeError):
        said(made(), torch.ones(1, POSITIONS + 1, dtype=torch.int64))


def test_it_is_the_same_on_any_number_of_threads() -> None:
    module, given, outer = made(rate=0.2), read(5, 40), torch.randn(5, 40, 48).bfloat16()

    def computed() -> list[Tensor]:
        module.zero_grad()
        torch.manual_seed(3)
        result = said(module, *given)
        result.backward(outer)
        return [result, *(one.grad for one in module.parameters() if one.grad is not None)]

    assert len(same_on_any_threads(computed)) == 6


def test_hooks_are_called() -> None:
    module, heard = made(), []
    module.LayerNorm.register_forward_hook(lambda *_: heard.append(1))  # type: ignore[union-attr]
    assert "EmbeddingSumFunctionBackward" not in functions(said(module, *read(2, 9))) and heard


def with_channels(*embeddings: ChannelEmbedding) -> tuple[nn.Module, ChannelTables]:
    """Embeddings whose word embeddings have tables of channels below, as `attach` adds them."""
    module = made()
    words: nn.Module = module.get_submodule("word_embeddings")
    tables = ChannelTables(embeddings, width=48, spread=0.3)
    for child in tables.modules():
        child.__class__ = KERNEL_MODULES.get(type(child), type(child))
    words.add_module(MODULE, tables)
    words.register_forward_hook(tables.add)
    return module, tables


def test_channels_are_further_rows_of_the_sum() -> None:
    module, tables = with_channels(BoxEmbedding(size=50), LanguageEmbedding(size=3))
    given, outer = read(5, 40), torch.randn(5, 40, 48).bfloat16()
    corners = torch.randint(0, 50, (5, 40, 2, 2)).sort(dim=2).values.flatten(2)
    channels = {"boxes": corners, "languages": torch.randint(3, (5, 40))}
    apart = {name: collect_row_gradients(one) for name, one in tables.named_parameters()}

    def computed(received: dict[str, Tensor] | None) -> Tensor:
        module.zero_grad()
        for leaf in apart.values():
            leaf.grad = None
        tables.receive(module, (), {"channels": received})
        result = said(module, *given)
        if result.requires_grad:
            result.backward(outer)
        return result

    ours = computed(channels)
    assert functions(ours) >= {"EmbeddingSumFunctionBackward"}
    fused = {name: leaf.grad.to_dense() for name, leaf in apart.items() if leaf.grad is not None}
    assert len(fused) == 5, "four tables of boxes, and one of languages"
    with pytest.raises(RecipeError, match="the network reads the channel 'boxes', and these rows have none"):
        said(module, *given)
    handle = module.get_submodule("word_embeddings").register_forward_hook(lambda *_: None)
    theirs = computed(channels)
    handle.remove()
    assert "EmbeddingSumFunctionBackward" not in functions(theirs), "another hook is called as well"
    close(ours, theirs, torch.bfloat16)
    for name, leaf in apart.items():
        assert leaf.grad is not None
        close(fused[name], leaf.grad.to_dense(), torch.float32, more=20)
    outside = {**channels, "languages": channels["languages"] + 1}
    with pytest.raises(IndexError, match="ids from 1 to 3, in an embedding of 3 rows"):
        computed(outside)


def test_more_rows_than_the_kernel_sums_are_left_to_the_modules() -> None:
    module, tables = with_channels(*(Numbered(number) for number in range(14)))
    tables.receive(module, (), {"channels": {f"c{number}": torch.ones(2, 9).long() for number in range(14)}})
    ids, kinds, places = read(2, 9)
    assert "EmbeddingSumFunctionBackward" not in functions(said(module, ids, kinds, places))


class Numbered:
    """One of many channels."""

    def __init__(self, number: int) -> None:
        self.name = self.channel = f"c{number}"
        self.tables, self.projections = {"rows": 4}, dict[str, int]()

    def lookups(self, values: Tensor) -> list[tuple[str, Tensor]]:
        return [("rows", values)]

    def projected(self, values: Tensor) -> list[tuple[str, Tensor]]:
        return []
