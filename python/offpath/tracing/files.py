"""Reads the files that processes write while they are traced. src/trace/layout.h describes them."""

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from offpath import file_versions, tracing
from offpath.codes import Code
from offpath.errors import OffpathError

VERSION = 1
_NAME = b"OFPTRAC"
_MAGIC = b"%s%d" % (_NAME, VERSION)
_HEADER = struct.Struct("<8sIIQQQQQQIIii40s64s64s")
_NAMES_OFFSET = 256
_CHUNK = struct.Struct("<QQ48s")
RECORD = np.dtype(
    [("time", "<u8"), ("id", "<u8"), ("bytes", "<u8"), ("other", "<u4"), ("what", "<u2"), ("kind", "<u2")]
)
BEGIN, END, INSTANT = range(3)


@dataclass(frozen=True)
class Chunk:
    """Records of one thread, oldest first."""

    thread: int
    thread_name: str
    records: np.ndarray


@dataclass(frozen=True)
class TraceFile:
    """What one process wrote. `rank` is -1 for a device."""

    path: Path
    node: str
    program: str
    process: int
    rank: int
    ranks: int
    boot: str
    clock: tuple[int, int]  # one moment on the monotonic clock and on the real-time clock, in ns
    dropped: int
    names: list[str]
    kinds: dict[str, int]  # number of each kind
    chunks: list[Chunk]

    def name(self, number: int) -> str:
        return self.names[number] if number < len(self.names) else "?"


def read_all(folder: Path) -> list[TraceFile]:
    paths = [path for path in tracing.find(folder) if _has_begun(path)]
    if not paths:
        raise OffpathError(
            Code.INPUT_FILE,
            f"{folder} holds no trace",
            "record one: offpath run --trace DIR -- mpirun -n 2 ./program",
        )
    return [read(path) for path in paths]


def _has_begun(path: Path) -> bool:
    """A process that is killed while it makes its file leaves one without a magic number."""
    with path.open("rb") as file:
        return any(file.read(len(_MAGIC)))


def read(path: Path) -> TraceFile:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise OffpathError(Code.INPUT_FILE, f"{path} cannot be read: {error.strerror}") from error
    if data[: len(_NAME)] == _NAME:
        version = int(data[7:8]) if data[7:8].isdigit() else repr(data[7:8])
        file_versions.check(path, "a trace", version, VERSION, "record another one")
    if len(data) < _HEADER.size or data[:8] != _MAGIC:
        raise OffpathError(Code.INPUT_FILE, f"{path} is no trace of a little-endian machine")
    (_, header_bytes, chunk_bytes, most, chunks, dropped, monotonic, realtime, process, kinds, names_bytes,
     rank, ranks, boot, node, program) = _HEADER.unpack_from(data)  # fmt: skip
    plausible = _NAMES_OFFSET + names_bytes <= header_bytes and chunks <= most and chunk_bytes > _CHUNK.size
    if not plausible:
        raise OffpathError(Code.INPUT_FILE, f"{path} is damaged: its header contradicts itself")
    names = [
        name.decode(errors="replace")
        for name in data[_NAMES_OFFSET : _NAMES_OFFSET + names_bytes].split(b"\0")[:-1]
    ]
    found = []
    for i in range(chunks):
        at = header_bytes + i * chunk_bytes
        if at + _CHUNK.size > len(data):
            break
        thread, records, thread_name = _CHUNK.unpack_from(data, at)
        room = (min(chunk_bytes, len(data) - at) - _CHUNK.size) // RECORD.itemsize
        array = np.frombuffer(data, RECORD, min(records, room), at + _CHUNK.size)
        found.append(Chunk(thread, _text(thread_name), array))
    return TraceFile(
        path, _text(node), _text(program), process, rank, ranks, _text(boot), (monotonic, realtime), dropped,
        names, {name: number for number, name in enumerate(names[:kinds])}, found,
    )  # fmt: skip


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode(errors="replace")
