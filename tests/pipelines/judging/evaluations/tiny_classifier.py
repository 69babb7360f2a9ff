"""A real task and real models, small enough to train inside a test.

Which package of the standard library does this documentation string belong to? Four classes; whole modules are either
trained on or tested on.
"""

from __future__ import annotations

import ast
import sysconfig
from pathlib import Path

import pyarrow
from pyarrow import parquet

PACKAGES = ("asyncio", "email", "importlib", "unittest")
Examples = list[tuple[str, str]]


def documentation() -> dict[str, Examples]:
    """(text, label) of the splits train, validation and test."""
    library = Path(sysconfig.get_paths()["stdlib"])
    splits: dict[str, Examples] = {"train": [], "validation": [], "test": []}
    for package in PACKAGES:
        for position, path in enumerate(sorted((library / package).glob("*.py"))):
            split = ("train", "test", "validation", "test")[position % 4]
            tree = ast.parse(path.read_bytes())
            for node in ast.walk(tree):
                if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                    text = ast.get_docstring(node) or ""
                    if len(text) > 30:
                        splits[split].append((text.replace(package, " "), package))
    return splits


def write_tables(splits: dict[str, Examples], folder: Path) -> dict[str, Path]:
    """The splits as parquet files with the columns text and label."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = {}
    for name, examples in splits.items():
        tables[name] = folder / f"{name}.parquet"
        columns = {"text": [text for text, _ in examples], "label": [label for _, label in examples]}
        parquet.write_table(pyarrow.table(columns), tables[name])
    return tables


def train_classifier(folder: Path, examples: Examples, seed: int, steps: int = 200) -> Path:
    """A BERT of two layers with its WordPiece tokenizer, trained for `steps` batches and saved into `folder`."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

    torch.set_num_threads(1)
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=1500, special_tokens=specials, show_progress=False)
    tokenizer.train_from_iterator((text for text, _ in examples), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=48, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]"
    )
    torch.manual_seed(seed)
    names = dict(enumerate(PACKAGES))
    network = BertForSequenceClassification(
        BertConfig(
            vocab_size=tokenizer.get_vocab_size(),
            hidden_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=128,
            initializer_range=0.1,
            max_position_embeddings=64,
            id2label=names,
            label2id={label: index for index, label in names.items()},
        )
    )
    optimizer = torch.optim.AdamW(network.parameters(), lr=5e-4)
    generator = torch.Generator().manual_seed(seed)
    network.train()
    for _ in range(steps):
        rows = torch.randint(len(examples), (16,), generator=generator).tolist()
        batch = fast([examples[row][0] for row in rows], padding=True, truncation=True, return_tensors="pt")
        labels = torch.tensor([PACKAGES.index(examples[row][1]) for row in rows])
        said = network(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], labels=labels)
        said.loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    network.eval().save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder
