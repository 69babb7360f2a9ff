"""Every task as continuation of a prompt, by beam search with a length penalty."""

from __future__ import annotations

from pipelines.parts.heads.beamed_text import BeamedTextHead
from pipelines.parts.heads.continuation import ContinuationHead


class ContinuationBeamsHead(BeamedTextHead, ContinuationHead, name="continuation_beams"):
    """`continuation` with a length penalty: a causal backbone writes answers by beam search."""
