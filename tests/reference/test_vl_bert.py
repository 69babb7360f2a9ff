"""Questions about images: what stands beside the words of a question and of the regions, and what a mask hides."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from transformers import PreTrainedTokenizerFast

from pipelines.corpora.steps.drawing import assign_parts
from pipelines.errors import DataError
from pipelines.networks.channel_embeddings import attach
from pipelines.parts.annotations.region_boxes import RegionBoxes
from pipelines.parts.annotations.region_vectors import RegionVectors
from pipelines.parts.corruptions.region_mask import VECTORS, RegionMask
from pipelines.parts.embeddings.boxes import BoxEmbedding
from pipelines.parts.embeddings.vectors import VectorEmbedding
from pipelines.parts.heads import backbone_inputs
from pipelines.parts.heads.image_questions import ImageQuestionsHead
from pipelines.parts.objectives.cross_entropy import CrossEntropy
from pipelines.task_families import Task, TaskFamily
from pipelines.vocabulary import Field
from tests.pipelines.parts.corruptions.rows import MASK, SPECIAL, plain, token_ids
from tests.pipelines.parts.heads.small_parts import answers_after_training, small_network, tensors

FAMILY = TaskFamily.model_validate("image_questions")
ANNOTATIONS = (RegionBoxes(), RegionVectors(width=2))
SEEN, WORDS = Task(FAMILY, ("json", "xml"), ANNOTATIONS), Task(FAMILY, ("json", "xml"))
LENGTH = 32
LEFT, RIGHT = [0, 0, 20, 10], [20, 0, 40, 10]


def example(question: str, label: str, vectors: list[list[float]], boxes: list[list[int]]) -> dict[str, Any]:
    count = len(boxes)
    return {
        "question": question, "regions": ["file"] * count, "boxes": boxes, "vectors": vectors, "size": [40, 20],
        "label": label,
    }  # fmt: skip


XML, JSON = [4.0, -3.0], [-4.0, 2.0]
EXAMPLES = [
    example("which is first", "xml", [XML, JSON], [LEFT, RIGHT]),
    example("which is first", "json", [JSON, XML], [LEFT, RIGHT]),
    example("which is first", "json", [XML, JSON], [RIGHT, LEFT]),
    example("which is last", "json", [XML, JSON], [LEFT, RIGHT]),
    example("which is last", "xml", [JSON, XML], [LEFT, RIGHT]),
    example("which is last", "xml", [XML, JSON], [RIGHT, LEFT]),
]


def test_regions_have_their_vectors_and_boxes_and_the_question_those_of_the_image(
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    encoded = ImageQuestionsHead().encode(EXAMPLES[:1], SEEN, tokenizer, LENGTH)
    batch = {str(name): value[0].numpy() for name, value in tensors(encoded, np.arange(1)).items()}
    ids, types = batch["input_ids"], batch["token_type_ids"]
    special = np.isin(ids, tokenizer.all_special_ids)
    region = (types == 1) & ~special
    one = len(tokenizer.encode("file", add_special_tokens=False))
    assert region.sum() == 2 * one and (types == 0).sum() > region.sum()
    assert batch["vectors"][region].tolist() == [XML] * one + [JSON] * one
    assert batch["boxes"][region].tolist() == [[0, 0, 500, 500]] * one + [[500, 0, 1000, 500]] * one
    question = (types == 0) & ~special
    np.testing.assert_allclose(batch["vectors"][question], np.tile(np.mean([XML, JSON], 0), (question.sum(), 1)))
    assert (batch["boxes"][question] == [0, 0, 1000, 1000]).all()
    assert not batch["vectors"][special].any()
    assert batch["labels"].tolist() == 1
    alone = ImageQuestionsHead().encode(EXAMPLES[:1], WORDS, tokenizer, LENGTH).collate(np.arange(1))
    assert {"vectors", "boxes"}.isdisjoint(map(str, alone)) and (alone[Field.INPUT_IDS][0] == ids).all()


def test_the_input_is_the_sum_of_token_segment_position_geometry_and_appearance(
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    head = ImageQuestionsHead()
    network: Any = small_network(head, SEEN, tokenizer)
    attach(network.base_model, [BoxEmbedding(), VectorEmbedding(size=2)])
    network = network.double().eval()
    batch = tensors(head.encode(EXAMPLES[:2], SEEN, tokenizer, LENGTH), np.arange(2))
    seen: dict[str, torch.Tensor] = {}
    layer = network.base_model.embeddings.LayerNorm
    layer.register_forward_pre_hook(lambda _, inputs: seen.update(sum=inputs[0]))
    network(**backbone_inputs(batch, network))
    weights: dict[str, torch.Tensor] = {
        name: value.detach() for name, value in network.base_model.embeddings.named_parameters()
    }

    def table(end: str) -> torch.Tensor:
        return next(value for name, value in weights.items() if name.endswith(end))

    ids = batch[Field.INPUT_IDS]
    left, upper, right, lower = batch[Field("boxes")].unbind(-1)
    expected = (
        table("word_embeddings.weight")[ids]
        + table("token_type_embeddings.weight")[batch[Field.TOKEN_TYPE_IDS]]
        + table("position_embeddings.weight")[: ids.shape[1]]
        + batch[VECTORS].double() @ table("vectors.projection.weight").T
        + table("boxes.x.weight")[left] + table("boxes.x.weight")[right]
        + table("boxes.y.weight")[upper] + table("boxes.y.weight")[lower]
        + table("boxes.height.weight")[lower - upper] + table("boxes.width.weight")[right - left]
    )  # fmt: skip
    torch.testing.assert_close(seen["sum"], expected, rtol=1e-10, atol=1e-10)


def test_training_learns_what_is_where_and_words_alone_cannot(tokenizer: PreTrainedTokenizerFast) -> None:
    head = ImageQuestionsHead()
    expected = [one["label"] for one in EXAMPLES]
    network: Any = small_network(head, SEEN, tokenizer)
    torch.manual_seed(0)
    attach(network.base_model, [BoxEmbedding(), VectorEmbedding(size=2)])
    encoded = head.encode(EXAMPLES, SEEN, tokenizer, LENGTH)
    assert answers_after_training(head, CrossEntropy(), network, encoded, SEEN, tokenizer, 300) == expected
    alone = head.encode(EXAMPLES, WORDS, tokenizer, LENGTH)
    network = small_network(head, WORDS, tokenizer)
    answers = answers_after_training(head, CrossEntropy(), network, alone, WORDS, tokenizer, 150)
    assert answers != expected and len(set(answers[:3])) == len(set(answers[3:])) == 1, "one answer for a question"


def test_an_example_without_regions_is_refused(tokenizer: PreTrainedTokenizerFast) -> None:
    with pytest.raises(DataError, match="example 0: it has no question or no regions; leave it out"):
        ImageQuestionsHead().encode([example("which", "xml", [], [])], WORDS, tokenizer, LENGTH)


def test_a_region_is_masked_as_a_whole_with_its_vector_and_the_text_at_its_own_rate() -> None:
    rows, length = 400, 62
    batch = plain(rows, length)
    vectors = np.zeros((rows, length, 3), dtype=np.float32)
    # fifteen regions of two tokens in the second half
    vectors[:, 31:61] = np.random.default_rng(1).normal(size=(rows, 15, 3)).repeat(2, 1)
    made = RegionMask(rate=0.1, region_rate=0.4).apply(
        {**batch, VECTORS: vectors}, token_ids(), np.random.default_rng(0)
    )
    positions = made[Field.MASKED_POSITIONS]
    selected = np.isin(np.arange(rows * length).reshape(rows, length), positions)
    pairs = selected[:, 31:61].reshape(rows, 15, 2)
    assert (pairs[..., 0] == pairs[..., 1]).all(), "whole regions"
    assert pairs.mean() == pytest.approx(0.4, abs=0.03) and selected[:, 1:31].mean() == pytest.approx(0.1, abs=0.02)
    assert not selected[:, [0, -1]].any(), "no special token"
    assert not made[VECTORS][selected].any() and np.array_equal(made[VECTORS][~selected], vectors[~selected])
    assert vectors[:, 31:61].all(), "the batch before is as it was"
    assert np.array_equal(made[Field.MASKED_LABELS], batch[Field.INPUT_IDS].ravel()[positions])
    assert (made[Field.INPUT_IDS].ravel()[positions] == MASK).mean() == pytest.approx(0.8, abs=0.03)


def test_a_row_in_which_nothing_was_drawn_has_what_was_nearest_and_an_empty_one_nothing() -> None:
    batch = plain(200, 8)
    batch[Field.INPUT_IDS][0] = SPECIAL[0]
    vectors = np.zeros((200, 8, 2), dtype=np.float32)
    vectors[:, 3:5] = 1.0
    made = RegionMask(rate=1e-9, region_rate=1e-9).apply(
        {**batch, VECTORS: vectors}, token_ids(), np.random.default_rng(0)
    )
    rows, columns = np.divmod(made[Field.MASKED_POSITIONS], 8)
    counts = np.bincount(rows, minlength=200)
    assert counts[0] == 0 and set(counts[1:]) == {1, 2}
    assert {(*columns[rows == row],) for row in range(1, 200)} == {(1,), (2,), (3, 4), (5,), (6,)}


def test_a_record_of_nlvr_is_read() -> None:
    square = {"x_loc": 40, "y_loc": 85, "size": 20, "color": "blue", "type": "square"}
    circle = {"x_loc": 10, "y_loc": 20, "size": 10, "color": "Yellow", "type": "circle"}
    record = {"sentence": "there is a circle", "label": "true", "structured_rep": [[square], [], [circle, square]]}
    row = FAMILY.convert_published(record, lambda *_: None)
    assert FAMILY.problem(row) is None
    renamed = {"text": record["sentence"], "label": "true", "regions": record["structured_rep"]}
    assert {name: FAMILY.convert_published(renamed, lambda *_: None)[name] for name in FAMILY.columns} == {
        name: row[name] for name in FAMILY.columns
    }
    assert (row["question"], row["regions"], row["size"]) == ("there is a circle", ["object"] * 3, [400, 100])
    assert row["boxes"] == [[40, 85, 60, 100], [310, 20, 320, 30], [340, 85, 360, 100]]
    assert row["vectors"][:2] == [[0, 0, 1, 0, 1, 0, 0.2], [1, 0, 0, 1, 0, 0, 0.1]]
    with pytest.raises(ValueError, match="the object 0 of box 1 has the color 'red' and the type 'square'"):
        FAMILY.convert_published({**record, "structured_rep": [[], [{**square, "color": "red"}]]}, lambda *_: None)
    with pytest.raises(ValueError, match="the object 0 of box 0 has no x_loc, y_loc, size, color and type"):
        FAMILY.convert_published({**record, "structured_rep": [[{"size": 1}]]}, lambda *_: None)


def test_questions_about_an_image_stay_in_one_part() -> None:
    pairs = [
        example(f"{which} {number}", "xml", [[float(number), 1.0]] * 2, [LEFT, RIGHT])
        for number in range(40)
        for which in ("first", "last")
    ]
    parts = assign_parts(pairs, FAMILY, {"validation": 0.2, "test": 0.3})
    assert all(parts[at] == parts[at + 1] for at in range(0, len(parts), 2))
    assert Counter(parts) == {"validation": 16, "test": 24, "train": 40}


def test_a_question_about_another_image_is_no_overlap() -> None:
    one, other = FAMILY.text(EXAMPLES[0]), FAMILY.text(EXAMPLES[1])
    assert one == FAMILY.text({**EXAMPLES[0], "label": "json"}) and one.startswith("which is first\nimage ")
    grams = [{tuple(text.split()[at : at + 5]) for at in range(len(text.split()) - 4)} for text in (one, other)]
    assert not set.intersection(*grams)
