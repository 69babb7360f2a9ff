"""Codes of 8, 4, 3, 2 bits or one, packed into bytes without gaps."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

BYTE = 8
"""Bits."""


def packed_columns(columns: int, bits: int) -> int:
    """Bytes of a row of `columns` codes."""
    return -(-columns * bits // BYTE)


def pack_codes(codes: Tensor, bits: int) -> Tensor:
    """uint8 [R, ⌈C · bits / 8⌉]: `codes` uint8 [R, C] below 2^bits, one after the other from the lowest bit of the
    first byte on; a code of 3 bits may begin in one byte and end in the next."""
    rows, columns = codes.shape
    if bits == BYTE:
        return codes
    # eight codes fill `bits` bytes, whatever `bits` is
    eights = pad(codes, (0, -columns % BYTE)).view(rows, -1, BYTE).long()
    words = (eights << bits * torch.arange(BYTE, device=codes.device)).sum(-1, keepdim=True)
    packed: Tensor = (words >> BYTE * torch.arange(bits, device=codes.device)) & 255
    return packed.flatten(1)[:, : packed_columns(columns, bits)].to(torch.uint8)


def unpack_codes(packed: Tensor, bits: int, columns: int) -> Tensor:
    """uint8 [R, columns]: the inverse of `pack_codes`."""
    rows, width = packed.shape
    if bits == BYTE:
        return packed
    parts = pad(packed, (0, -width % bits)).view(rows, -1, bits).long()
    words = (parts << BYTE * torch.arange(bits, device=packed.device)).sum(-1, keepdim=True)
    codes: Tensor = (words >> bits * torch.arange(BYTE, device=packed.device)) & (2**bits - 1)
    return codes.flatten(1)[:, :columns].to(torch.uint8)
