"""Every task as generation of its answer, by beam search with a length penalty (Lewis et al. 2019, BART, §5.3)."""

from __future__ import annotations

from pipelines.parts.heads.beamed_text import BeamedTextHead


class TextToTextBeamsHead(BeamedTextHead, name="text_to_text_beams"):
    """`text_to_text` with a length penalty: an encoder-decoder writes answers by beam search."""

    paper = "arXiv:1910.13461"
