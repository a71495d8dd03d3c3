"""Writes a trace as an OTF2 archive, which Vampir and the tools of Score-P read, with OTF2's own library.

Each rank and each device is a location group. Each of its lanes is a location, whose slices are enters and
leaves of regions; bytes and peers are attributes. The library is opened when a trace is written (Debian's
package libopen-trace-format2-10), so nothing else needs it.
"""

import contextlib
import ctypes
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from offpath import tracing
from offpath.codes import Code
from offpath.errors import OffpathError
from offpath.tracing.slices import Slice, Trace, in_order

_NAME = "traces"  # the archive's anchor is traces.otf2
_LIBRARIES = ("libopen-trace-format2.so.10", "libotf2.so.10", "libotf2.so")
# Values of OTF2's enumerations.
_WRITE, _POSIX, _NO_COMPRESSION, _FLUSH = 0, 1, 1, 1
_UINT64, _STRING = 4, 11  # types
_PROCESS, _CPU_THREAD, _STREAM = 1, 1, 2
_FUNCTION, _USER, _MPI = 1, 1, 4
_NONE = 0xFFFFFFFF
_NO_TIMESTAMP = 0xFFFFFFFFFFFFFFFF

_u8, _u32, _u64, _text, _handle = (
    ctypes.c_uint8, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_void_p,
)  # fmt: skip
_PreFlush = ctypes.CFUNCTYPE(_u8, _handle, _u8, _u64, _handle, ctypes.c_bool)
_PostFlush = ctypes.CFUNCTYPE(_u64, _handle, _u8, _u64)


class _FlushCallbacks(ctypes.Structure):
    _fields_ = [("before", _PreFlush), ("after", _PostFlush)]


# The functions' parameters. All but those that make a handle return an error code.
_SIGNATURES: dict[str, list] = {
    "Archive_SetFlushCallbacks": [_handle, ctypes.POINTER(_FlushCallbacks), _handle],
    "Archive_SetSerialCollectiveCallbacks": [_handle],
    "Archive_SetCreator": [_handle, _text],
    "Archive_OpenEvtFiles": [_handle],
    "Archive_CloseEvtWriter": [_handle, _handle],
    "Archive_CloseEvtFiles": [_handle],
    "Archive_OpenDefFiles": [_handle],
    "Archive_CloseDefWriter": [_handle, _handle],
    "Archive_CloseDefFiles": [_handle],
    "Archive_Close": [_handle],
    "EvtWriter_Enter": [_handle, _handle, _u64, _u32],
    "EvtWriter_Leave": [_handle, _handle, _u64, _u32],
    "AttributeList_AddUint64": [_handle, _u32, _u64],
    "AttributeList_AddStringRef": [_handle, _u32, _u32],
    "GlobalDefWriter_WriteClockProperties": [_handle, _u64, _u64, _u64, _u64],
    "GlobalDefWriter_WriteString": [_handle, _u32, _text],
    "GlobalDefWriter_WriteAttribute": [_handle, _u32, _u32, _u32, _u8],
    "GlobalDefWriter_WriteSystemTreeNode": [_handle, _u32, _u32, _u32, _u32],
    "GlobalDefWriter_WriteLocationGroup": [_handle, _u32, _u32, _u8, _u32, _u32],
    "GlobalDefWriter_WriteLocation": [_handle, _u64, _u32, _u8, _u64, _u32],
    "GlobalDefWriter_WriteRegion": [_handle, _u32, _u32, _u32, _u32, _u8, _u8, _u32, _u32, _u32, _u32],
}
_MAKERS: dict[str, list] = {
    "Archive_Open": [_text, _text, _u8, _u64, _u64, _u8, _u8],
    "Archive_GetEvtWriter": [_handle, _u64],
    "Archive_GetDefWriter": [_handle, _u64],
    "Archive_GetGlobalDefWriter": [_handle],
    "AttributeList_New": [],
}


def find_library() -> ctypes.CDLL | None:
    """OTF2's library. None if it is not there."""
    for name in _LIBRARIES:
        with contextlib.suppress(OSError):
            return ctypes.CDLL(name)
    return None


def write(trace: Trace, folder: Path) -> Path | None:
    """Writes the archive below `folder` and returns its anchor file. None: there is no library."""
    found = find_library()
    return _Writer(found, trace, folder / tracing.OTF2).write() if found is not None else None


class _Writer:
    def __init__(self, found: ctypes.CDLL, trace: Trace, folder: Path):
        self.trace, self.folder, self.opened = trace, folder, found
        self.call: dict[str, Callable[..., Any]] = {}
        for name, parameters in _SIGNATURES.items():
            self.call[name] = self._checked(name, parameters)
        for name, parameters in _MAKERS.items():
            function = found[f"OTF2_{name}"]
            function.argtypes, function.restype = parameters, _handle
            self.call[name] = function
        self.strings: dict[str, int] = {}
        self.regions: dict[tuple[str, int], int] = {}

    def _checked(self, name: str, parameters: list) -> Callable[..., None]:
        function = self.opened[f"OTF2_{name}"]
        function.argtypes, function.restype = parameters, ctypes.c_int

        def checked(*arguments) -> None:
            if code := function(*arguments):
                raise OffpathError(
                    Code.OUTPUT_FILE, f"OTF2_{name} failed with code {code}; the archive is {self.folder}"
                )

        return checked

    def string(self, text: str) -> int:
        return self.strings.setdefault(text, len(self.strings))

    def region(self, name: str, paradigm: int) -> int:
        self.string(name)
        return self.regions.setdefault((name, paradigm), len(self.regions))

    def write(self) -> Path:
        call, end = self.call, self.trace.duration
        shutil.rmtree(self.folder, ignore_errors=True)
        archive = call["Archive_Open"](
            str(self.folder).encode(), _NAME.encode(), _WRITE, 1 << 20, 4 << 20, _POSIX, _NO_COMPRESSION
        )
        if not archive:
            raise OffpathError(Code.OUTPUT_FILE, f"OTF2 cannot make an archive in {self.folder}")
        flushes = _FlushCallbacks(_PreFlush(lambda *_: _FLUSH), _PostFlush(lambda *_: end))
        call["Archive_SetFlushCallbacks"](archive, ctypes.byref(flushes), None)
        call["Archive_SetSerialCollectiveCallbacks"](archive)
        call["Archive_SetCreator"](archive, b"offpath")
        # Events refer to definitions by number, and the definitions are written last.
        lanes = [
            (group, f"{lane} ({thread})" if thread else lane, row)
            for group, actor in enumerate(self.trace.actors)
            for (thread, lane), rows in actor.lanes.items()
            for row in rows
        ]
        call["Archive_OpenEvtFiles"](archive)
        attributes = call["AttributeList_New"]()
        for location, (_, lane, row) in enumerate(lanes):
            writer = call["Archive_GetEvtWriter"](archive, location)
            self._events(writer, attributes, row, _MPI if lane.startswith("calls") else _USER)
            call["Archive_CloseEvtWriter"](archive, writer)
        call["Archive_CloseEvtFiles"](archive)
        call["Archive_OpenDefFiles"](archive)
        for location in range(len(lanes)):
            call["Archive_CloseDefWriter"](archive, call["Archive_GetDefWriter"](archive, location))
        call["Archive_CloseDefFiles"](archive)
        self._definitions(call["Archive_GetGlobalDefWriter"](archive), lanes)
        call["Archive_Close"](archive)
        return self.folder / f"{_NAME}.otf2"

    def _events(self, writer: int, attributes: int, row: list[Slice], paradigm: int) -> None:
        call = self.call
        enter, leave = call["EvtWriter_Enter"], call["EvtWriter_Leave"]
        for begins, i in in_order(row):
            one = row[i]
            region = self.region(one.name, paradigm)
            if not begins:
                leave(writer, None, one.end, region)
                continue
            if one.bytes:
                call["AttributeList_AddUint64"](attributes, 0, one.bytes)
            if one.peer:
                call["AttributeList_AddStringRef"](attributes, 1, self.string(one.peer))
            enter(writer, attributes, one.begin, region)

    def _definitions(self, writer: int, lanes: list[tuple[int, str, list[Slice]]]) -> None:
        call, trace = self.call, self.trace
        nodes = list(dict.fromkeys(actor.node for actor in trace.actors))
        empty, machine, node_class = (self.string(text) for text in ("", "machine", "node"))
        attributes = [(self.string("bytes"), _UINT64), (self.string("peer"), _STRING)]
        for text in [*nodes, *(actor.name for actor in trace.actors), *(lane for _, lane, _ in lanes)]:
            self.string(text)
        call["GlobalDefWriter_WriteClockProperties"](writer, 10**9, 0, trace.duration + 1, _NO_TIMESTAMP)
        for text, number in self.strings.items():
            call["GlobalDefWriter_WriteString"](writer, number, text.encode())
        for number, (name_of, value_type) in enumerate(attributes):
            call["GlobalDefWriter_WriteAttribute"](writer, number, name_of, empty, value_type)
        call["GlobalDefWriter_WriteSystemTreeNode"](writer, 0, machine, machine, _NONE)
        for number, node in enumerate(nodes, 1):
            call["GlobalDefWriter_WriteSystemTreeNode"](writer, number, self.string(node), node_class, 0)
        for number, actor in enumerate(trace.actors):
            call["GlobalDefWriter_WriteLocationGroup"](
                writer, number, self.string(actor.name), _PROCESS, nodes.index(actor.node) + 1, _NONE
            )
        for number, (group, lane, row) in enumerate(lanes):
            call["GlobalDefWriter_WriteLocation"](
                writer, number, self.string(lane), _CPU_THREAD, 2 * len(row), group
            )
        for (name, paradigm), number in self.regions.items():
            label = self.string(name)
            call["GlobalDefWriter_WriteRegion"](
                writer, number, label, label, empty, _FUNCTION, paradigm, 0, empty, 0, 0
            )
