"""Lets TCP hand segments larger than the usual 64 KiB to a link, so that emulating the link costs less.

Every segment on a shaped link costs a timer and a walk through the bridge, which is expensive on virtual
machines. The kernel has had the setting for IPv4 since 6.3. The `ip` of Debian 12 does not know it, so this
module sets it by netlink.
"""

import socket
import struct

_RTM_SETLINK = 19
_NLM_F_REQUEST, _NLM_F_ACK, _NLMSG_ERROR = 1, 4, 2
_IFLA_GSO_IPV4_MAX_SIZE, _IFLA_GRO_IPV4_MAX_SIZE = 63, 64
_HEADER = struct.Struct("=IHHII")
_LINK = struct.Struct("=BBHiII")


def set_largest(interface: str, size: int) -> bool:
    """Sets it for an interface in this process's network namespace. Returns False if the kernel does not know
    the setting, which does no harm."""
    attributes = b"".join(
        struct.pack("=HHI", 8, kind, size) for kind in (_IFLA_GSO_IPV4_MAX_SIZE, _IFLA_GRO_IPV4_MAX_SIZE)
    )
    body = _LINK.pack(socket.AF_UNSPEC, 0, 0, socket.if_nametoindex(interface), 0, 0) + attributes
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as channel:
        channel.send(
            _HEADER.pack(_HEADER.size + len(body), _RTM_SETLINK, _NLM_F_REQUEST | _NLM_F_ACK, 1, 0) + body
        )
        answer = channel.recv(4096)
    kind, (error,) = _HEADER.unpack_from(answer)[1], struct.unpack_from("=i", answer, _HEADER.size)
    if kind != _NLMSG_ERROR:
        raise OSError(f"unexpected answer {kind} from netlink")
    return error == 0
