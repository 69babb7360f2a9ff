"""Perplexity against transformers' own losses, on language models with random and with known weights."""

from __future__ import annotations
