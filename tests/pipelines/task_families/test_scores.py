"""Every score against scikit-learn, SciPy, sacreBLEU, conlleval's rules or a hand-worked case."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from pipelines.task_families import TaskFamily
from tests.small_corpus import documents

EXACT = 1e-12
LABELS = ["a", "b", "c", "d"]


def family(name: str) -> TaskFamily:
    return TaskFamily.model_validate(name)


def scores(name: str, gold: Sequence[Any], answers: Sequence[Any], labels: Sequence[str] = ()) -> dict[str, float]:
    one = family(name)
    found = one.scores(one.statistics(gold, answers, labels))
    assert tuple(found) == one.metrics and all(type(value) is float for value in found.values())
    return found


@pytest.mark.parametrize("name", ["text_classification", "pair_classification"])
@pytest.mark.parametrize("classes", [2, 3, 4])
def test_classification_is_scored_as_scikit_learn_does(name: str, classes: int) -> None:
    random = np.random.default_rng(classes)
    gold = [LABELS[n] for n in random.integers(0, classes, 200)]
    answers = [right if random.random() < 0.6 else LABELS[random.integers(0, 4)] for right in gold]
    found = scores(name, gold, answers, LABELS)
    assert found["macro_f1"] == pytest.approx(f1_score(gold, answers, average="macro"), abs=EXACT)
    assert found["accuracy"] == pytest.approx(accuracy_score(gold, answers), abs=EXACT)
    assert found["mcc"] == pytest.approx(matthews_corrcoef(gold, answers), abs=EXACT)


def test_an_answer_that_is_no_label_is_wrong_and_no_label_of_its_own() -> None:
    found = scores("text_classification", ["a", "a", "b", "b"], ["a", "gibberish", "b", "b"], LABELS)
    assert found["accuracy"] == 0.75
    assert found["macro_f1"] == pytest.approx((2 / 3 + 1) / 2, abs=EXACT)
    assert scores("text_classification", ["a", "a"], ["a", "a"], LABELS) == {
        "macro_f1": 1.0,
        "accuracy": 1.0,
        "mcc": 0.0,
        "micro_f1": 1.0,
    }


def test_label_sets_are_scored_as_scikit_learn_does_and_ranked_as_by_hand() -> None:
    random = np.random.default_rng(4)
    right, probabilities = random.random((60, 4)) < 0.4, random.random((60, 4))
    gold = [{label: 1.0 for label, one in zip(LABELS, row, strict=True) if one} for row in right]
    answers = [dict(zip(LABELS, row.tolist(), strict=True)) for row in probabilities]
    found = scores("label_sets", gold, answers, LABELS)
    given = probabilities >= 0.5
    assert found["micro_f1"] == pytest.approx(f1_score(right, given, average="micro"), abs=EXACT)
    assert found["macro_f1"] == pytest.approx(f1_score(right, given, average="macro"), abs=EXACT)
    for k in (1, 3):
        top = np.argsort(-probabilities, axis=1)[:, :k]
        assert found[f"precision_at_{k}"] == pytest.approx(np.take_along_axis(right, top, 1).mean(), abs=EXACT)
    assert found["precision_at_5"] == pytest.approx(right.sum() / 60 / 5, abs=EXACT), "four labels of five"


def test_a_label_that_training_lacks_is_missed_and_no_label_at_all_is_right_where_there_is_none() -> None:
    found = scores("label_sets", [{"a": 1.0, "z": 1.0}], [{"a": 0.9, "b": 0.1}], LABELS)
    assert found["micro_f1"] == pytest.approx(2 / 3) and found["macro_f1"] == 0.5 and found["precision_at_1"] == 1
    assert scores("label_sets", [{}], [{"a": 0.4}], LABELS)["micro_f1"] == 1.0
    assert scores("label_sets", [{}], [{"a": 0.6}], LABELS)["micro_f1"] == 0.0


def test_pair_regression_is_correlation_with_ties_and_without_numbers() -> None:
    random = np.random.default_rng(0)
    gold = np.round(random.uniform(0, 5, 100), 1)
    answers = np.round(gold + random.normal(0, 1, 100))
    found = scores("pair_regression", gold, answers)
    assert found["spearman"] == pytest.approx(spearmanr(gold, answers).statistic, abs=EXACT)
    assert found["pearson"] == pytest.approx(pearsonr(gold, answers).statistic, abs=EXACT)
    assert scores("pair_regression", [1.0, 2.0], [3.0, 3.0]) == {"spearman": 0.0, "pearson": 0.0}
    assert scores("pair_regression", [0.0, 4.0, 5.0], [float("nan"), 4.0, 5.0])["spearman"] < 0.6


def conlleval(gold: Sequence[Sequence[str]], given: Sequence[Sequence[str]]) -> tuple[int, int, int]:
    """Entities right, found and asked for by the rules of the Perl script, written out for B, I and O."""

    def chunks(tags: Sequence[str]) -> set[tuple[int, int, str]]:
        found, begun = set(), -1
        before, kind_before = "O", ""
        for number, tag in enumerate([*tags, "O"]):
            mark, kind = tag[0], tag[2:]
            ends = before in "BI" and (mark in "BO" or kind != kind_before)
            starts = mark == "B" or (mark == "I" and (before == "O" or kind != kind_before))
            if ends and begun >= 0:
                found.add((begun, number, kind_before))
            if starts:
                begun = number
            before, kind_before = mark, kind
        return found

    pairs = [(chunks(right), chunks(said)) for right, said in zip(gold, given, strict=True)]
    return sum(len(a & b) for a, b in pairs), sum(len(b) for _, b in pairs), sum(len(a) for a, _ in pairs)


def test_tagging_counts_entities_as_conlleval_does_illegal_tags_included() -> None:
    random = np.random.default_rng(0)
    tags = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
    given = [[tags[n] for n in random.integers(0, 5, length)] for length in random.integers(1, 12, 300)]
    gold = [[tag if random.random() < 0.7 else "O" for tag in row] for row in given]
    right, found, asked = conlleval(gold, given)
    measured = scores("tagging", gold, given)
    assert right > 100
    assert measured["precision"] == pytest.approx(right / found, abs=EXACT)
    assert measured["recall"] == pytest.approx(right / asked, abs=EXACT)
    assert measured["f1"] == pytest.approx(2 * right / (found + asked), abs=EXACT)


def test_tagging_worked_by_hand() -> None:
    gold = [["B-PER", "I-PER", "O", "B-LOC"]]
    assert scores("tagging", gold, [["B-PER", "I-PER", "O", "I-LOC"]]) == {
        "f1": 1.0, "precision": 1.0, "recall": 1.0, "legal": 0.75
    }  # fmt: skip
    assert scores("tagging", gold, [["I-PER", "I-LOC", "O", "O"]]) == {
        "f1": 0.0, "precision": 0.0, "recall": 0.0, "legal": 0.5
    }  # fmt: skip
    assert scores("tagging", [["O"]], [["O"]]) == {"f1": 0.0, "precision": 0.0, "recall": 0.0, "legal": 1.0}


@pytest.mark.parametrize(
    ("right", "given", "f1", "exact"),
    [
        ("The Norman dukes", "norman duke's", 1.0, 1.0),  # case, article and punctuation do not count
        ("in 1066, at Hastings", "at Hastings", 2 * 2 / (4 + 2), 0.0),
        ("to be or not to be", "be be be to", 2 * 3 / (6 + 4), 0.0),  # a word counts as often as both hold it
        ("", "", 1.0, 1.0),
        ("", "words", 0.0, 0.0),
        ("words", "", 0.0, 0.0),
        ("words", "others", 0.0, 0.0),
    ],
)
def test_spans_are_compared_as_the_squad_script_does(right: str, given: str, f1: float, exact: float) -> None:
    found = scores("span_extraction", [[right] if right else []], [given])
    assert found == {"f1": pytest.approx(f1, abs=EXACT), "exact_match": exact}


def test_the_best_of_several_answers_counts() -> None:
    assert scores("span_extraction", [["Ada", "Ada Lovelace"]], ["ada lovelace"]) == {"f1": 1.0, "exact_match": 1.0}


def test_chinese_spans_are_compared_by_runs_of_characters() -> None:
    # CMRC's script: the longest common run, 《 and punctuation left out, a number one unit
    assert scores("span_extraction", [["《光荣与梦想》"]], ["光荣与梦想。"]) == {"f1": 1.0, "exact_match": 1.0}
    found = scores("span_extraction", [["1963年11月"]], ["于1963年"])
    assert found["f1"] == pytest.approx(2 * 2 / (4 + 3), abs=EXACT)  # 1963 年 | of 1963 年 11 月 and 于 1963 年
    # characters in another order share only their longest run
    assert scores("span_extraction", [["北京大学"]], ["大学北京"])["f1"] == pytest.approx(2 * 2 / 8, abs=EXACT)


def test_multiple_choice_is_the_share_of_right_choices() -> None:
    assert scores("multiple_choice", [0, 3, 1, 2], [0, 3, 2, -1]) == {"accuracy": 0.5}


@pytest.mark.parametrize("tokenizer", ["13a", "zh"])
def test_generation_is_scored_as_sacrebleu_does(tokenizer: str) -> None:
    random = np.random.default_rng(0)
    if tokenizer == "zh":
        gold = ["".join(chr(0x4E00 + n) for n in random.integers(0, 30, 12)) + "，ok" for _ in range(40)]
    else:
        gold = [text[:200].split("\n")[0] for text in documents("logging")[:40]]
    answers = [gold[n - 1] if random.random() < 0.3 else text[: len(text) // 2 + 4] for n, text in enumerate(gold)]
    found = scores("text_generation", gold, answers)
    assert found["chrf"] == pytest.approx(CHRF().corpus_score(answers, [gold]).score / 100, abs=EXACT)
    assert found["bleu"] == pytest.approx(BLEU(tokenize=tokenizer).corpus_score(answers, [gold]).score / 100, abs=EXACT)
    assert 0.05 < found["bleu"] < 0.9 and 0.05 < found["chrf"] < 0.9
    assert set(scores("text_generation", ["x"], [""]).values()) == {0.0}
    assert scores("text_generation", ["the  same"], ["the same"])["exact_match"] == 1.0


def test_attachment_is_counted_as_the_script_of_conll_2018_does() -> None:
    random = np.random.default_rng(0)
    relations = np.array(["nsubj", "nsubj:pass", "obj", "obl:tmod", "obl"])
    heads = [random.integers(0, size + 1, size) for size in random.integers(1, 12, 200)]
    said = [np.where(random.random(len(row)) < 0.7, row, 0) for row in heads]
    kinds = [relations[random.integers(0, 5, len(row))] for row in heads]
    other = [np.where(random.random(len(row)) < 0.7, row, "obj") for row in kinds]
    rows = [{"heads": [*map(int, a)], "relations": [*map(str, b)]} for a, b in zip(heads, kinds, strict=True)]
    one = family("dependency_parsing")
    gold = [one.gold(row) for row in rows]
    answers = [[*zip(map(int, a), map(str, b), strict=True)] for a, b in zip(said, other, strict=True)]
    found = scores("dependency_parsing", gold, answers)
    # what the script aligns are the words of all sentences; subtypes are left out, punctuation is not
    same = np.concatenate(heads) == np.concatenate(said)
    plain = [[kind.partition(":")[0] for row in rows for kind in row] for rows in (kinds, other)]
    assert found["uas"] == pytest.approx(same.mean(), abs=EXACT)
    assert found["las"] == pytest.approx((same & (np.array(plain[0]) == np.array(plain[1]))).mean(), abs=EXACT)
    assert 0.3 < found["las"] < found["uas"] < 0.9 and 0 < found["whole_trees"] < 0.3


def test_words_that_a_tree_says_nothing_of_are_wrong() -> None:
    gold = [[(2, "nsubj"), (0, "root")], [(0, "root")]]
    assert scores("dependency_parsing", gold, [[(2, "obj")], []]) == {"las": 0.0, "uas": 1 / 3, "whole_trees": 0.0}
    assert scores("dependency_parsing", gold, gold)["whole_trees"] == 1.0


def test_ranks_are_filtered_as_by_taking_other_right_entities_out() -> None:
    random = np.random.default_rng(0)
    entities = [f"e{number}" for number in range(40)]
    gold, answers, ranks = [], [], []
    for _ in range(200):
        said, right = {}, {}
        for side in ("head", "tail"):
            ranking = [str(entity) for entity in random.permutation(entities)]
            chosen, *others = random.choice(entities, 6, replace=False)
            right[side] = (str(chosen), frozenset(map(str, others)))
            said[side] = ranking
            ranks.append([entity for entity in ranking if entity not in right[side][1]].index(chosen) + 1)
        gold.append(right)
        answers.append(said)
    found, expected = scores("link_prediction", gold, answers), np.array(ranks)
    assert found["mrr"] == pytest.approx((1 / expected).mean(), abs=EXACT)
    for cut in (1, 3, 10):
        assert found[f"hits_at_{cut}"] == pytest.approx((expected <= cut).mean(), abs=EXACT)


def test_an_entity_that_is_not_ranked_is_not_found_and_a_side_that_is_not_asked_does_not_count() -> None:
    gold = [{"head": ("a", frozenset()), "tail": ("b", frozenset("c"))}]
    assert scores("link_prediction", gold, [{"tail": ["c", "b"]}])["mrr"] == 1.0
    assert scores("link_prediction", gold, [{"tail": ["c", "b"], "head": ["x", "y"]}])["mrr"] == 0.5
    assert scores("link_prediction", gold, [{}])["mrr"] == 0.0


@pytest.mark.parametrize(
    ("right", "given", "same"),
    [
        (["Wolfe Tones"], ["wolfe tones."], True),
        (["2004"], ["2004.0"], True),  # numbers
        (["2004"], ["2005"], False),
        (["1,234"], ["1234"], False),  # without the annotators' number, a text
        (["São Paulo"], ['"Sao  Paulo"'], True),
        (["Ada"], ["Ada (mathematician)"], True),
        (["Ada"], ["Ada[1]"], True),
        (["1815-12-10"], ["1815-12-10 "], True),
        (["xx-12-10"], ["xxxx-12-10"], True),
        (["1815-xx-xx"], ["1815"], True),  # a year is a number
        (["1815-13-10"], ["1815-14-10"], False),  # no date, a text
        (["a", "b"], ["b", "a"], True),
        (["a", "b"], ["a"], False),
        (["a"], ["a", "A"], True),  # one value
        (["a"], [], False),
    ],
)
def test_answers_of_tables_denote_what_the_script_of_wikitablequestions_says(
    right: list[str], given: list[str], same: bool
) -> None:
    found = scores("table_questions", [right], [given])
    assert found == {"denotation_accuracy": float(same), "exact_match": float(sorted(right) == sorted(given))}


def test_a_large_group_does_not_rule_the_mean_of_groups() -> None:
    gold = [(0, "large")] * 8 + [(1, "small")] * 2
    assert scores("minimal_pairs", gold, [0] * 10) == {"accuracy": 0.8, "mean_of_paradigms": 0.5}
    assert scores("minimal_pairs", gold, [-1] * 10)["accuracy"] == 0.0, "a tie is a wrong answer"
    words = [("Italy", "capital"), ("walked", "past")]
    assert scores("word_analogies", words, ["Italy", "walks"]) == {"accuracy": 0.5, "mean_of_relations": 0.5}


EXAMPLES: dict[str, tuple[list[Any], list[Any]]] = {
    "text_classification": (LABELS * 500, ["a", "c"] * 1000),
    "label_sets": ([{"a": 1.0}, {"b": 1.0}] * 1000, [{"a": 0.9, "b": 0.2}, {"a": 0.6, "b": 0.3}] * 1000),
    "pair_classification": (LABELS * 500, ["a", "c"] * 1000),
    "pair_regression": ([0.0, 1.0, 2.0, 3.0] * 500, [1.0, 3.0] * 1000),
    "tagging": ([["B-A", "O"], ["O"]] * 1000, [["B-A", "O"], ["I-A"]] * 1000),
    "span_extraction": ([["one two"], []] * 1000, ["one", ""] * 1000),
    "multiple_choice": ([0, 1] * 1000, [0, 0] * 1000),
    "text_generation": (["one two three four", "and more"] * 1000, ["one two three five", "none"] * 1000),
    "dependency_parsing": ([[(0, "root")], [(2, "a"), (0, "root")]] * 1000, [[(0, "root")], []] * 1000),
    "link_prediction": ([{"tail": ("a", frozenset())}] * 2000, [{"tail": ["a"]}, {"tail": ["b", "a"]}] * 1000),
    "table_questions": ([["a"], ["b"]] * 1000, [["a"], ["c"]] * 1000),
    "word_senses": ([(0, 2, True), (1, 4, False)] * 1000, [0, 0] * 1000),
    "minimal_pairs": ([(0, "x"), (1, "y")] * 1000, [0, 0] * 1000),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_thousand_resamples_of_two_thousand_rows_take_about_a_second(name: str) -> None:
    one = family(name)
    statistics = one.statistics(*EXAMPLES[name], LABELS)
    assert len(statistics) == 2000
    drawn = np.random.default_rng(0).integers(0, 2000, (100, 2000))
    begin = time.process_time()
    values = [one.scores(statistics[rows])[one.metrics[0]] for rows in drawn]
    assert time.process_time() - begin < 0.3, "ten times this is allowed on a loaded machine: 3 s"
    assert np.isfinite(values).all() and np.std(values) > 0
