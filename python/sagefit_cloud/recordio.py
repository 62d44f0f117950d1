"""RecordIO, the format in which Pipe mode marks where a record ends (``RecordWrapperType: RecordIO``).

A record is the magic number and its length in bytes as little-endian 32-bit words, then the content, filled up with
zeros to a multiple of 4 bytes. The upper three bits of the length say which part of a split record it is; 0 is a whole
one. Sources: MXNet's dmlc-core ``include/dmlc/recordio.h``; ``write_recordio`` in sagemaker-python-sdk,
``sagemaker/amazon/common.py``.
"""

from __future__ import annotations

import struct

MAGIC = 0xCED7230A
LONGEST = 2**29 - 1  # bytes of content: what the length field holds


def record(content: bytes) -> bytes:
    """One whole record. Raises ValueError where the content is longer than ``LONGEST``."""
    if len(content) > LONGEST:
        raise ValueError(f"{len(content)} bytes; a RecordIO record holds at most {LONGEST}")
    return struct.pack("<II", MAGIC, len(content)) + content + bytes(-len(content) % 4)
