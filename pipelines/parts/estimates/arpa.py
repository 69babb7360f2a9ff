"""N-gram tables that were estimated elsewhere, from an ARPA file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pipelines.errors import DataError
from pipelines.parts.estimates import Estimation, TokenFile, Workspace
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PretrainedConfig

TAIL = 4096
"""Bytes at the end of a file in which its last line is."""


class Arpa(Estimation, name="arpa"):
    r"""The tables of a file in ARPA format, as KenLM, SRILM and `cursus export --to model.arpa` write it.

    The words of the file are those of the stage's tokenizer: `<s>` and `</s>` are its end of a document, `<unk>` is its
    unknown word. The corpus is where the tokenizer comes from; nothing else of it is read.
    """

    paper = "Stolcke 2002"
    needs_abilities: ClassVar[frozenset[Ability]] = frozenset({Ability.COUNTED, Ability.CAUSAL})

    file: Path
    """The ARPA file."""

    @property
    def reads_files(self) -> tuple[Path, ...]:
        return (self.file,)

    def check_files(self) -> None:
        size = self.file.stat().st_size
        with self.file.open("rb") as file:
            file.seek(max(0, size - TAIL))
            if not file.read().rstrip().endswith(b"\\end\\"):
                raise DataError(f"{self.file}: the file does not end with \\end\\: it was cut short; write it again")

    def weights(self, text: TokenFile, config: PretrainedConfig, workspace: Workspace) -> dict[str, NDArray[Any]]:
        from pipelines.parts.estimates.arpa_file import ArpaVocabulary, read_arpa

        unknown = next((token for token in text.special if text.texts[token] in ("<unk>", "[UNK]")), None)
        tables = read_arpa(self.file, ArpaVocabulary.of(text.texts, text.end, unknown))
        sizes = [len(values) for name, values in tables.items() if name.endswith("log_probs")]
        if len(sizes) != config.order:
            raise DataError(f"{self.file}: the file has {len(sizes)} orders; set backbone.order: {len(sizes)}")
        config.ngrams = sizes
        return tables
