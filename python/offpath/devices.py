"""Devices with operating systems of their own: their addresses, whether they answer, and the key with which
jobs authenticate."""

import os
import socket
import stat
import struct
import time
from dataclasses import dataclass
from pathlib import Path

from offpath.codes import Code
from offpath.errors import OffpathError

DEFAULT_PORT = 7471
_ACCEPTED = (
    "write ADDR[:PORT] for all nodes, NODE=ADDR[:PORT],NODE=..., or a file with lines NODE ADDR[:PORT]"
)
_KEY_BYTES = (32, 4096)
_MAGIC = b"OFPM"
_ANSWER_SECONDS = 2.0


@dataclass(frozen=True)
class RemoteDevice:
    node: str | None  # None: the device serves every node
    host: str
    port: int = DEFAULT_PORT

    @property
    def address(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse(text: str) -> list[RemoteDevice]:
    """The devices in `text`, which is a list in the form of OFFPATH_DEVICES, or the name of a file, with or
    without @."""
    text = text.strip()
    if text.startswith("@") or ("=" not in text and Path(text).is_file()):
        return _parse_file(Path(text.removeprefix("@")))
    if "=" not in text:
        return [_device(None, text, "devices")]
    found = []
    for part in text.split(","):
        node, equals, address = part.partition("=")
        if not equals:
            raise OffpathError(Code.DEVICES, f"devices: {part!r} is no NODE=ADDR[:PORT]", _ACCEPTED)
        found.append(_device(node.strip(), address.strip(), "devices"))
    return _checked(found, "devices")


def setting(devices: list[RemoteDevice]) -> str:
    """The value of OFFPATH_DEVICES for these devices. It contains the addresses themselves, so the nodes need
    no file."""
    return ",".join(
        device.address if device.node is None else f"{device.node}={device.address}" for device in devices
    )


def _parse_file(path: Path) -> list[RemoteDevice]:
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise OffpathError(
            Code.INPUT_FILE,
            f"devices: {path} cannot be read: {getattr(error, 'strerror', None) or error}",
            _ACCEPTED,
        ) from error
    found = []
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if len(words) != 2:
            raise OffpathError(
                Code.DEVICES, f"{path}, line {number}: {line.strip()!r} is no NODE ADDR[:PORT]", _ACCEPTED
            )
        found.append(_device(words[0], words[1], f"{path}, line {number}"))
    if not found:
        raise OffpathError(Code.DEVICES, f"devices: {path} names no device", _ACCEPTED)
    return _checked(found, str(path))


def _device(node: str | None, text: str, where: str) -> RemoteDevice:
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
    else:
        host, colon, port = text.partition(":")
        bracket, rest = "]", colon + port
    digits = rest.removeprefix(":") if rest else str(DEFAULT_PORT)
    plain = (
        bracket and host and not any(c in " \t\n/=,@[]" for c in host) and (not rest or rest.startswith(":"))
    )
    if (
        not plain
        or not (digits.isascii() and digits.isdigit())
        or not 1 <= int(digits) <= 65535
        or node == ""
    ):
        raise OffpathError(
            Code.DEVICES,
            f"{where}: {text!r} is no address of a device",
            _ACCEPTED + "; an IPv6 address in brackets",
        )
    return RemoteDevice(node, host, int(digits))


def _checked(found: list[RemoteDevice], where: str) -> list[RemoteDevice]:
    names = [device.node for device in found if device.node is not None]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise OffpathError(Code.DEVICES, f"{where}: {', '.join(twice)} is named twice", "one device a node")
    return found


def check_key_file(path: Path) -> Path:
    """The full path of the key file. Refuses a file that the daemon or a rank would refuse."""
    try:
        about = path.stat()
        content = path.read_bytes()
    except OSError as error:
        raise OffpathError(
            Code.INPUT_FILE, f"the key file {path} cannot be read: {error.strerror}"
        ) from error
    if not stat.S_ISREG(about.st_mode):
        raise OffpathError(Code.DEVICES, f"the key file {path} is not a file")
    if about.st_mode & 0o077:
        raise OffpathError(
            Code.DEVICES,
            f"the key file {path} can be read or written by others (mode {stat.S_IMODE(about.st_mode):04o})",
            f"chmod 600 {path}",
        )
    if about.st_uid not in (0, os.geteuid()):
        raise OffpathError(
            Code.DEVICES, f"the key file {path} belongs to user {about.st_uid}, not to you or root"
        )
    if not _KEY_BYTES[0] <= len(content) <= _KEY_BYTES[1]:
        raise OffpathError(
            Code.DEVICES,
            f"the key file {path} holds {len(content)} bytes; a key has {_KEY_BYTES[0]} to {_KEY_BYTES[1]}",
            f"head -c 32 /dev/urandom > {path}",
        )
    return path.absolute()


def reach(device: RemoteDevice, seconds: float = _ANSWER_SECONDS) -> tuple[bool, str]:
    """Whether offpathd answers at this address, and a description of what answered. This function only
    listens, and the device tells nothing more to a peer that only connects."""
    deadline = time.monotonic() + seconds
    try:
        with socket.create_connection((device.host, device.port), seconds) as connection:
            greeting = b""
            while len(greeting) < 12:
                connection.settimeout(max(0.01, deadline - time.monotonic()))
                data = connection.recv(12 - len(greeting))
                if not data:
                    return False, "the connection was closed at once"
                greeting += data
    except TimeoutError:
        return False, f"no answer within {seconds:g} s"
    except OSError as error:
        return False, error.strerror or str(error)
    return recognize(greeting)


def recognize(greeting: bytes) -> tuple[bool, str]:
    """Judges the first 12 bytes that a device sends: length of the message, magic, version, kind."""
    _, magic, version, _ = struct.unpack("<I4sHH", greeting)
    if magic != _MAGIC:
        return False, "something that is not offpathd answers"
    return True, f"offpathd, protocol version {version}"
