"""An MCAP file that is written a chunk of rows at a time.

The package mcap writes a message at a time in Python, at some 10 000 rows a second. This module
writes the messages of a chunk and their index as arrays, and every other record by that package.

Source: MCAP format specification, version 0.
"""

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import BinaryIO, NamedTuple, Self

import numpy as np
import zstandard
from mcap.data_stream import RecordBuilder
from mcap.opcode import Opcode
from mcap.records import (
    Channel,
    Chunk,
    ChunkIndex,
    DataEnd,
    Footer,
    Header,
    McapRecord,
    Metadata,
    MetadataIndex,
    Schema,
    Statistics,
    SummaryOffset,
)
from mcap.writer import MCAP0_MAGIC
from numpy.typing import NDArray

MESSAGE = [
    ("opcode", "u1"), ("length", "<u8"), ("channel", "<u2"), ("sequence", "<u4"),
    ("log_ns", "<u8"), ("publish_ns", "<u8"),
]  # fmt: skip
BEFORE_LENGTH_B = 9  # opcode and length, which the length leaves out
INDEX = np.dtype([("log_ns", "<u8"), ("offset", "<u8")])
INDEX_HEAD = np.dtype(
    [("opcode", "u1"), ("length", "<u8"), ("channel", "<u2"), ("size_B", "<u4")]
)  # fmt: skip
LEVEL = -1  # of zstd: 1 us for the 880 bytes of a row of 40 columns, as lz4, and half as large


class Messages(NamedTuple):
    """Messages of one channel in a chunk, and where they are in it."""

    records: NDArray[np.void]
    places: NDArray[np.void]


class ChunkedFile:
    """Writes an MCAP file; `finish` ends it. Chunks are compressed and written in a thread."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._schemas: list[Schema] = []
        self._channels: list[Channel] = []
        self._chunks: list[ChunkIndex] = []
        self._metadata: list[MetadataIndex] = []
        self._counts: dict[int, int] = {}
        self._messages: dict[int, list[Messages]] = {}
        self._size_B = 0
        self._compress = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True).compress
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._writing: Future[None] | None = None
        file.write(MCAP0_MAGIC)
        self._write(Header("", "hil-arrays"))

    def add_metadata(self, name: str, data: Mapping[str, str]) -> None:
        """Add text by name."""
        self._wait()
        at = self._file.tell()
        length = self._write(Metadata(name=name, metadata=dict(data)))
        self._metadata.append(MetadataIndex(offset=at, length=length, name=name))

    def add_channel(self, topic: str, encoding: str, name: str, schema: bytes) -> int:
        """Add a topic, whose messages have this encoding, type and schema; returns its number."""
        self._wait()
        number = len(self._channels) + 1
        channel = Channel(
            id=number, topic=topic, message_encoding=encoding, metadata={}, schema_id=number
        )
        kind = {"json": "jsonschema"}.get(encoding, encoding)
        described = Schema(id=number, data=schema, encoding=kind, name=name)
        self._write(described)
        self._write(channel)
        self._schemas.append(described)
        self._channels.append(channel)
        self._counts[number] = 0
        return number

    def add_messages(
        self, channel: int, times_ns: NDArray[np.int64], first: int, blank: NDArray[np.void]
    ) -> NDArray[np.void]:
        """Add copies of `blank` to the chunk, at these times and numbered from `first` on.

        A chunk has the messages of one channel after the other.
        The messages returned may be changed until the chunk ends.
        """
        n = len(times_ns)
        one = np.zeros((), dtype=[*MESSAGE, ("data", blank.dtype)])
        one["opcode"], one["channel"], one["data"] = Opcode.MESSAGE, channel, blank
        one["length"] = one.dtype.itemsize - BEFORE_LENGTH_B
        messages = np.full(n, one.view(f"V{one.itemsize}")).view(one.dtype)
        messages["sequence"] = np.arange(first, first + n)
        messages["log_ns"] = messages["publish_ns"] = times_ns
        index = np.empty(n, INDEX)
        index["log_ns"] = times_ns
        index["offset"] = self._size_B + messages.itemsize * np.arange(n)
        self._messages.setdefault(channel, []).append(Messages(messages, index))
        self._counts[channel] += n
        self._size_B += messages.nbytes
        return messages["data"]

    def end_chunk(self) -> None:
        """Write the chunk of the messages since the last one; nothing if there are none.

        Raises
        ------
        OSError
            The chunk before could not be written.
        """
        if self._messages:
            self._wait()
            self._writing = self._thread.submit(self._write_chunk, self._messages)
            self._messages, self._size_B = {}, 0

    def _wait(self) -> None:
        """Wait until the last chunk is in the file: only its thread may write until then."""
        if self._writing is not None:
            self._writing.result()

    def _write_chunk(self, messages: dict[int, list[Messages]]) -> None:
        data = b"".join(some.records.data for parts in messages.values() for some in parts)
        indices = {
            channel: np.concatenate([some.places for some in parts])
            for channel, parts in messages.items()
        }
        times = [index["log_ns"] for index in indices.values()]
        packed = self._compress(data)
        chunk = Chunk(
            compression="zstd",
            data=packed,
            message_start_time=min(int(of.min()) for of in times),
            message_end_time=max(int(of.max()) for of in times),
            uncompressed_crc=0,  # none: zstd's own checksum is faster
            uncompressed_size=len(data),
        )
        at = self._file.tell()
        length = self._write(chunk)
        offsets = {}
        for channel, index in indices.items():
            offsets[channel] = self._file.tell()
            head = np.zeros((), INDEX_HEAD)
            head["opcode"], head["channel"] = Opcode.MESSAGE_INDEX, channel
            head["size_B"] = index.nbytes
            head["length"] = INDEX_HEAD.itemsize - BEFORE_LENGTH_B + index.nbytes
            self._file.write(head.tobytes())
            self._file.write(index.data)
        self._chunks.append(
            ChunkIndex(
                chunk_length=length,
                chunk_start_offset=at,
                compression="zstd",
                compressed_size=len(packed),
                message_end_time=chunk.message_end_time,
                message_index_length=self._file.tell() - at - length,
                message_index_offsets=offsets,
                message_start_time=chunk.message_start_time,
                uncompressed_size=len(data),
            )
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown()

    def finish(self) -> None:
        """Write the last chunk and the summary.

        Raises
        ------
        OSError
            They could not be written.
        """
        self.end_chunk()
        self._wait()
        self._write(DataEnd(0))
        statistics = Statistics(
            attachment_count=0,
            channel_count=len(self._channels),
            channel_message_counts=self._counts,
            chunk_count=len(self._chunks),
            message_count=sum(self._counts.values()),
            message_end_time=max((c.message_end_time for c in self._chunks), default=0),
            message_start_time=min((c.message_start_time for c in self._chunks), default=0),
            metadata_count=len(self._metadata),
            schema_count=len(self._schemas),
        )
        groups: dict[Opcode, list[McapRecord]] = {
            Opcode.SCHEMA: [*self._schemas],
            Opcode.CHANNEL: [*self._channels],
            Opcode.STATISTICS: [statistics],
            Opcode.CHUNK_INDEX: [*self._chunks],
            Opcode.METADATA_INDEX: [*self._metadata],
        }
        start = self._file.tell()
        offsets = []
        for opcode, records in groups.items():
            at = self._file.tell()
            length = sum(map(self._write, records))
            offsets.append(SummaryOffset(group_opcode=opcode, group_start=at, group_length=length))
        offsets_start = self._file.tell()
        for offset in offsets:
            self._write(offset)
        self._write(Footer(start, offsets_start, summary_crc=0))
        self._file.write(MCAP0_MAGIC)

    def _write(self, record: McapRecord) -> int:
        """Write a record; returns its length in bytes."""
        builder = RecordBuilder()
        record.write(builder)
        data: bytes = builder.end()  # type: ignore[no-untyped-call]
        return self._file.write(data)
