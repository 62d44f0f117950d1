"""PyTorch's CUDA caching allocator, replayed: what tensors of given sizes, in order, make it reserve.

The rules are those of c10/cuda/CUDACachingAllocator.cpp with default settings: sizes are rounded up to 512 bytes; up to
1 MiB comes out of segments of 2 MiB, up to 10 MiB out of segments of 20 MiB, more out of segments of its own in steps
of 2 MiB; the smallest free block that is large enough is taken and split; neighbours that are free merge; what was
reserved stays reserved.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass

MIB = 2**20


@dataclass(eq=False)
class Block:
    """A stretch of a segment."""

    size: int
    small: bool
    free: bool = False
    before: Block | None = None
    after: Block | None = None
    key: tuple[int, int] = (0, 0)


class Allocator:
    """Bytes ``reserved`` so far; they never fall, as cached blocks are kept."""

    def __init__(self) -> None:
        self.reserved = 0
        self._free: dict[bool, list[Block]] = {True: [], False: []}
        self._count = 0

    def _keep(self, block: Block) -> None:
        self._count += 1
        block.free, block.key = True, (block.size, self._count)
        bisect.insort(self._free[block.small], block, key=lambda b: b.key)

    def _drop(self, block: Block) -> None:
        pool = self._free[block.small]
        del pool[bisect.bisect_left(pool, block.key, key=lambda b: b.key)]

    def allocate(self, size: int) -> Block:
        """Reserve ``size`` bytes, out of a cached block if one is large enough."""
        size = max(512, -(-size // 512) * 512)
        small = size <= MIB
        pool = self._free[small]
        at = bisect.bisect_left(pool, (size, 0), key=lambda b: b.key)
        if at < len(pool):
            block = pool.pop(at)
        else:
            segment = 2 * MIB if small else 20 * MIB if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB
            self.reserved += segment
            block = Block(segment, small)
        block.free = False
        rest = block.size - size
        if (rest >= 512) if small else (rest > MIB):
            other = Block(rest, small, before=block, after=block.after)
            if block.after:
                block.after.before = other
            block.after, block.size = other, size
            self._keep(other)
        return block

    def release(self, block: Block) -> None:
        """Give ``block`` back to the cache."""
        if block.before and block.before.free:
            self._drop(block.before)
            block = self._merge(block.before, block)
        if block.after and block.after.free:
            self._drop(block.after)
            block = self._merge(block, block.after)
        self._keep(block)

    @staticmethod
    def _merge(first: Block, second: Block) -> Block:
        first.size += second.size
        first.after = second.after
        if second.after:
            second.after.before = first
        return first
