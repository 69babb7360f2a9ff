"""Scores of real predictions, with ties, empty answers and classes that nobody gives, against other people's
counting."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics import BLEU
from scipy.stats import spearmanr
from seqeval.metrics import f1_score as entity_f1
from seqeval.metrics import precision_score as entity_precision
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from pipelines.task_families import TaskFamily
from tests.small_corpus import documents
from tests.small_tasks import chinese_reviews

EXACT = 1e-12
CLASSES = ["email", "http", "logging", "unittest", "xml"]


def scores(name: str, gold: Sequence[Any], answers: Sequence[Any], labels: Sequence[str] = ()) -> dict[str, float]:
    one = TaskFamily.model_validate(name)
    return one.scores(one.statistics(gold, answers, labels))


@cache
def predicted() -> tuple[list[str], list[str]]:
    """Right and given classes of documentation strings, of a model that has never seen one of the classes."""
    rows = [(text, label) for label in CLASSES for text in documents(label)[:60]]
    train = [row for at, row in enumerate(rows) if at % 2 and row[1] != "http"]
    test = [row for at, row in enumerate(rows) if not at % 2]
    words = TfidfVectorizer(max_features=80)
    model = LogisticRegression(max_iter=500).fit(
        words.fit_transform([text for text, _ in train]), [k for _, k in train]
    )
    return [label for _, label in test], [*map(str, model.predict(words.transform([text for text, _ in test])))]


def test_classes_of_real_predictions_one_of_which_is_never_given() -> None:
    gold, given = predicted()
    assert "http" in gold and "http" not in given
    found = scores("text_classification", gold, given, CLASSES)
    assert found["accuracy"] == pytest.approx(accuracy_score(gold, given), abs=EXACT)
    assert found["macro_f1"] == pytest.approx(f1_score(gold, given, average="macro"), abs=EXACT)
    assert found["micro_f1"] == pytest.approx(f1_score(gold, given, average="micro"), abs=EXACT)
    assert found["mcc"] == pytest.approx(matthews_corrcoef(gold, given), abs=EXACT)
    # answers that are no class: right ones are missed, and no class is given in their stead
    silent = ["?" if at % 5 == 0 else answer for at, answer in enumerate(given)]
    found = scores("text_classification", gold, silent, CLASSES)
    wanted = f1_score(gold, silent, average="micro", labels=CLASSES)
    assert found["micro_f1"] == pytest.approx(wanted, abs=EXACT) and found["micro_f1"] > found["accuracy"]


def test_entities_of_real_predictions_are_counted_as_seqeval_does() -> None:
    sentences = [text.split()[:50] for text in documents("http", "logging")]
    gold = []
    for tokens in sentences:
        tags = ["O"] * len(tokens)
        for at, token in enumerate(tokens):
            kind = "CODE" if re.search(r"[_()=]", token) else "NAME" if token[0].isupper() else None
            if kind:
                tags[at] = f"I-{kind}" if at and tags[at - 1][2:] == kind else f"B-{kind}"
        gold.append(tags)
    # each word's commonest tag, which often cannot follow the one before
    seen = Counter(
        (token, tag)
        for tokens, tags in zip(sentences[::2], gold[::2], strict=True)
        for token, tag in zip(tokens, tags, strict=True)
    )
    best = {token: tag for (token, tag), _ in sorted(seen.items(), key=lambda item: item[1])}
    given = [[best.get(token, "O") for token in tokens] for tokens in sentences]
    found = scores("tagging", gold, given)
    assert found["f1"] == pytest.approx(entity_f1(gold, given), abs=EXACT)
    assert found["precision"] == pytest.approx(entity_precision(gold, given), abs=EXACT)
    assert 0.3 < found["f1"] < 0.99 and found["legal"] < 1


def test_numbers_with_many_ties_are_ranked_as_scipy_does() -> None:
    texts = documents("http", "logging", "unittest")
    gold = [float(len(set(text.split())) // 10) for text in texts]
    words = TfidfVectorizer(max_features=40).fit_transform(texts)
    given = np.round(Ridge().fit(words[::2], gold[::2]).predict(words))
    assert len(set(given)) < len(given) / 3
    assert scores("pair_regression", gold, given)["spearman"] == pytest.approx(spearmanr(gold, given)[0], abs=EXACT)


def squad(right: str, given: str) -> tuple[float, float]:
    """F1 and exact match by the rules of SQuAD's evaluation, from their description: drop case, punctuation,
    articles."""

    def words(text: str) -> list[str]:
        plain = "".join(one for one in text.lower() if one not in set(string.punctuation))
        return [word for word in re.sub(r"\b(a|an|the)\b", " ", plain).split() if word]

    wanted, said = words(right), words(given)
    shared = sum(min(wanted.count(word), said.count(word)) for word in set(wanted))
    if not wanted or not said:
        return float(wanted == said), float(wanted == said)
    precision, recall = shared / len(said), shared / len(wanted)
    return (2 * precision * recall / (precision + recall) if shared else 0.0), float(" ".join(wanted) == " ".join(said))


def cmrc(right: str, given: str) -> tuple[float, float]:
    """F1 and exact match by the rules of CMRC 2018's evaluation: characters and words, the longest run that both
    share."""
    dropped = set("-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』")

    def plain(text: str) -> str:
        return "".join(one for one in text.lower().strip() if one not in dropped)

    def units(text: str) -> list[str]:
        from nltk.tokenize.destructive import NLTKWordTokenizer

        found, rest = [], ""
        for one in [*plain(text), "一"]:
            if "\u4e00" <= one <= "\u9fa5":
                found += [*NLTKWordTokenizer().tokenize(rest), one]
                rest = ""
            else:
                rest += one
        return found[:-1]

    wanted, said = units(right), units(given)
    runs = {tuple(wanted[a:b]) for a in range(len(wanted)) for b in range(a + 1, len(wanted) + 1)}
    longest = max(
        (b - a for a in range(len(said)) for b in range(a + 1, len(said) + 1) if tuple(said[a:b]) in runs), default=0
    )
    if not longest:
        return 0.0, float(plain(right) == plain(given))
    precision, recall = longest / len(said), longest / len(wanted)
    return 2 * precision * recall / (precision + recall), float(plain(right) == plain(given))


def spans(texts: Sequence[str], seed: int) -> list[tuple[str, str]]:
    """A run of each text, and another that overlaps it, is it, or is empty."""
    random = np.random.default_rng(seed)
    pairs = []
    for text in texts:
        begin, size = int(random.integers(0, max(1, len(text) - 40))), int(random.integers(2, 30))
        moved = begin + int(random.integers(-4, 5)) if random.random() < 0.7 else begin
        given = text[max(0, moved) : moved + size] if random.random() < 0.9 else ""
        if right := text[begin : begin + size].strip():
            pairs.append((right, given))
    return pairs


def test_english_spans_are_compared_by_the_rules_of_squad() -> None:
    pairs = spans(documents("email", "http", "logging", "xml"), 0)
    assert len(pairs) > 200 and any(not given for _, given in pairs)
    for right, given in pairs:
        f1, exact = squad(right, given)
        found = scores("span_extraction", [[right]], [given])
        assert found == {"f1": pytest.approx(f1, abs=EXACT), "exact_match": exact}, (right, given)


def test_chinese_spans_are_compared_by_the_rules_of_cmrc() -> None:
    pairs = spans([text for text, _ in chinese_reviews() if len(text) > 30], 1)
    pairs = [(right, given) for right, given in pairs if any("\u4e00" <= one <= "\u9fa5" for one in right)]
    pairs += [
        ("1963年11月22日", "1963年"),
        ("iPhone 4S的3.5寸屏", "3.5寸"),
        ("don't停", "don't"),
        ("他说：“好”。", "他说好"),
    ]
    assert len(pairs) > 150 and any(re.search(r"\d|[A-Za-z]", right) for right, _ in pairs)
    for right, given in pairs:
        f1, exact = cmrc(right, given)
        found = scores("span_extraction", [[right]], [given])
        assert found == {"f1": pytest.approx(f1, abs=EXACT), "exact_match": exact}, (right, given)


class Characters:
    """Words of a Chinese text for rouge-score: what stands between its characters is left to spaces."""

    def tokenize(self, text: str) -> list[str]:
        return re.sub("([\u3400-\u9fff\uf900-\ufaff])", r" \1 ", re.sub(r"[^\w]", " ", text.lower())).split()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_summaries_are_scored_as_rouge_score_and_sacrebleu_do(language: str) -> None:
    chinese = language == "zh"
    texts = (
        [text for text, _ in chinese_reviews()[:60]]
        if chinese
        else [" ".join(text.split()[:40]) for text in documents("logging")[:60]]
    )
    # the text before it, its own first half, or nothing
    given = [
        ("" if at % 10 == 9 else texts[at - 1] if at % 3 == 0 else text[: len(text) // 2])
        for at, text in enumerate(texts)
    ]
    found = scores("text_generation", texts, given)
    scorer = RougeScorer(["rouge1", "rouge2", "rougeL"], tokenizer=Characters() if chinese else None)
    every = [scorer.score(right, said) for right, said in zip(texts, given, strict=True)]
    for metric, theirs in (("rouge1", "rouge1"), ("rouge2", "rouge2"), ("rouge_l", "rougeL")):
        assert found[metric] == pytest.approx(np.mean([one[theirs].fmeasure for one in every]), abs=EXACT)
        assert 0.2 < found[metric] < 0.9
    bleu = BLEU(tokenize="zh" if chinese else "13a").corpus_score(given, [texts]).score
    assert found["bleu"] == pytest.approx(bleu / 100, abs=EXACT)
