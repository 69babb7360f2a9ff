"""ARPA files: a toy by hand, written and read again, and every way in which one is no such file."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import PreTrainedTokenizerFast

from pipelines.errors import DataError, RecipeError
from pipelines.models.opening import ModelRecord, build_network, open_model
from pipelines.networks.ngram import NgramConfig, NgramForCausalLM
from pipelines.parts.backbones.lstm import Lstm
from pipelines.parts.estimates.arpa import Arpa
from pipelines.parts.estimates.arpa_file import ArpaVocabulary, read_arpa, write_arpa
from pipelines.parts.heads.causal_lm import CausalLMHead
from pipelines.recipe.job import Job, Runtime
from pipelines.recipe.schema import Stage
from pipelines.serving.exporting.arpa import export_arpa
from pipelines.training.ranks.run import run
from tests.steps import library_of

TOY = r"""
\data\
ngram 1=5
ngram 2=4
ngram 3=2

\1-grams:
-99	<s>	-0.5
-0.7	</s>
-0.6	<unk>
-0.5	a	-0.25
-0.4	b	-0.125

\2-grams:
-0.3	<s> a	-0.1
-0.2	a b	-0.05
-0.9	b a
-1.1	b </s>

\3-grams:
-0.15	<s> a b
-0.35	a b a

\end\
"""
WORDS = ArpaVocabulary.of(["<unk>", "end", "a", "b"], 1, 0)
UNKNOWN, END, A, B = range(4)


def network_of(tables: dict[str, np.ndarray]) -> NgramForCausalLM:
    sizes = [len(values) for name, values in tables.items() if name.endswith("log_probs")]
    network = NgramForCausalLM(NgramConfig(vocab_size=sizes[0], order=len(sizes), ngrams=sizes))
    network.ngram.load_state_dict({name: torch.from_numpy(values) for name, values in tables.items()}, strict=True)
    return network


def toy(folder: Path, text: str = TOY) -> Path:
    (folder / "toy.arpa").write_text(text, encoding="utf-8")
    return folder / "toy.arpa"


def test_a_toy_has_the_probabilities_that_backing_off_gives_by_hand(tmp_path: Path) -> None:
    network = network_of(read_arpa(toy(tmp_path), WORDS))
    cases = {
        (END, A, B): -0.15,  # a trigram
        (END, A, A): -0.1 - 0.25 - 0.5,  # no trigram, and no bigram "a a"
        (A, B, A): -0.35,
        (A, B, END): -0.05 - 1.1,  # a bigram
        (B, A, B): -0.2,  # "b a" has no back-off weight, which is 0
        (A, A, B): -0.2,  # an unseen history
        (END, B): -0.5 - 0.4,
        (B, UNKNOWN): -0.125 - 0.6,
    }
    for ids, expected in cases.items():
        found = float(network(torch.tensor([ids])).logits[0, -2, ids[-1]]) / math.log(10)
        assert found == pytest.approx(expected, abs=1e-6), ids


def counted(tables: dict[str, Path], out: Path, estimate: object, size: int = 300) -> Path:
    stage = Stage.model_validate(
        {
            "kind": "pretrain", "corpus": "general", "limits": {"unknown": 1},
            "tokenizer": {"name": "words", "vocab_size": size, "min_count": 1},
            "backbone": {"name": "ngram", "order": 3}, "estimate": estimate, "head": "causal_lm",
            "budget": {"length": 64, "tokens": 3000},
        }
    )  # fmt: skip
    run(
        Job(
            fingerprint="c" * 64, recipe="r", stage_name="general", stage=stage, seed=0, language="en", tables=tables,
            out=out, runtime=Runtime(threads=1),
        )
    )  # fmt: skip
    return out


def test_a_model_that_is_written_and_read_again_is_the_same(tables: dict[str, Path], tmp_path: Path) -> None:
    first = counted(tables, tmp_path / "first", {"name": "kneser_ney", "prune": [0, 0, 1]})
    export_arpa(first, tmp_path / "model.arpa")
    again = counted(tables, tmp_path / "again", {"name": "arpa", "file": str(tmp_path / "model.arpa")})
    ours, read = (open_model(folder, "cpu").network for folder in (first, again))
    assert ours.config.ngrams == read.config.ngrams
    for name, value in ours.state_dict().items():
        if value.dtype == torch.int64:
            assert torch.equal(value, read.state_dict()[name]), name
        else:
            torch.testing.assert_close(value, read.state_dict()[name], atol=2e-6, rtol=1e-6, msg=name)
    lines = (tmp_path / "model.arpa").read_text(encoding="utf-8").splitlines()
    # the end of a document never stands inside an n-gram, and never begins one
    grams = [line.split("\t")[1].split() for line in lines if "\t" in line]
    assert all("</s>" not in words[:-1] and "<s>" not in words[1:] for words in grams)
    assert {len(words) for words in grams} == {1, 2, 3} and ["<s>"] in grams and ["</s>"] in grams
    with pytest.raises(DataError, match=r"model\.arpa.* none of the stage's tokenizer|is not given"):
        counted(tables, tmp_path / "other", {"name": "arpa", "file": str(tmp_path / "model.arpa")}, size=200)


@pytest.mark.parametrize("line", range(1, len(TOY.rstrip().splitlines())))
def test_a_file_that_is_cut_short_is_one_sentence_wherever_it_ends(line: int, tmp_path: Path) -> None:
    path = toy(tmp_path, "\n".join(TOY.splitlines()[:line]) + "\n")
    with pytest.raises(DataError, match=r"toy\.arpa:\d+: .*cut short") as refused:
        read_arpa(path, WORDS)
    assert "\n" not in str(refused.value)
    with pytest.raises(DataError, match=r"toy\.arpa: .*cut short"):
        Arpa(file=path).check_files()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("\\data\\", "data", r"toy\.arpa:2: expected \\data\\, got 'data'"),
        ("ngram 2=4", "ngram 3=4", r"toy\.arpa:4: expected 'ngram 2='"),
        ("ngram 2=4", "ngram 2=5", r":20: expected a number, 2 words .*promises 5 2-grams"),
        ("ngram 2=4", "ngram 2=3", r":18: expected \\3-grams:, got '-1.1"),
        ("a b\t-0.05", "a c\t-0.05", r":16: the word 'c' is none of the stage's tokenizer"),
        ("-0.9\tb a", "often\tb a", r":17: 'often b a': expected a number"),
        ("-0.9\tb a", "-0.9\ta b", r"the 2-gram 'a b' is given twice"),
        ("-0.4\tb\t", "-0.4\ta\t", r"the word 'a' is given twice"),
        ("-0.2\ta b\t-0.05", "-0.2\ta a\t-0.05", r"the first 2 words of 3-gram 2 are no 2-gram"),
    ],
)
def test_a_malformed_file_is_one_sentence(old: str, new: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=words) as refused:
        read_arpa(toy(tmp_path, TOY.replace(old, new, 1)), WORDS)
    assert "\n" not in str(refused.value)


def test_bytes_that_are_no_text_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "toy.arpa").write_bytes(TOY.encode().replace(b"b a", b"\xff a"))
    with pytest.raises(DataError, match="not UTF-8"):
        read_arpa(tmp_path / "toy.arpa", WORDS)


def test_a_word_with_a_space_has_no_place_in_a_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"token 1 \('New York'\) .*has a space"):
        ArpaVocabulary.of(["a", "New York", "end"], 2, None)
    tables = read_arpa(toy(tmp_path), WORDS)
    write_arpa(tables, WORDS, tmp_path / "again.arpa")
    again = read_arpa(tmp_path / "again.arpa", WORDS)
    assert all(np.allclose(again[name], values, atol=1e-6) for name, values in tables.items())


RECIPE = """\
stages:
  general:
    kind: pretrain
    corpus: general
    tokenizer: words
    backbone: {{name: ngram, order: 3}}
    estimate: {{name: arpa, file: {file}}}
    head: causal_lm
"""


def test_a_recipe_names_a_file_that_is_there_and_whole(tmp_path: Path) -> None:
    good, cut = toy(tmp_path), tmp_path / "cut.arpa"
    cut.write_text(TOY[:-8], encoding="utf-8")
    stage = library_of(tmp_path, good=RECIPE.format(file=good)).load("good").stages["general"]
    assert isinstance(stage.estimate, Arpa) and stage.estimate.reads_files == (good,)
    for file, words in ((cut, "cut short"), (tmp_path / "none.arpa", "there is no file")):
        with pytest.raises(RecipeError, match=rf"bad\.yaml:7: stages\.general\.estimate: arpa: .*{words}"):
            library_of(tmp_path, bad=RECIPE.format(file=file)).load("bad")


def test_only_counts_are_written(tokenizer: PreTrainedTokenizerFast, tmp_path: Path) -> None:
    build_network(ModelRecord(head=CausalLMHead()), Lstm().tiny().config(tokenizer, 32)).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(RecipeError, match=r"--to lm\.arpa: .*counted n-grams, and this model is a lstm"):
        export_arpa(tmp_path, tmp_path / "lm.arpa")
