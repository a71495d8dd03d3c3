"""Figures of the papers' machines that the models use, with their places."""

from dataclasses import dataclass

IPDPS22 = "'Smarter' NICs for faster molecular dynamics (IPDPS 2022)"


@dataclass(frozen=True)
class Thor:
    """Table I, and what the text of the same paper says of the machine."""

    sockets: int = 2
    socket_gflops: float = 656.6
    socket_GBps: float = 76.8
    socket_cores: int = 16
    device_gflops: float = 80.0
    device_GBps: float = 25.6
    device_cores: int = 8
    link_GBps: float = 12.5
    force_speedup: float = 2.5  # section V-4: of eight threads of a BlueField-2 over one
    node_W: float = 316.0  # section VI
    device_W: tuple[float, float] = (20.0, 40.0)
    adapter_W: tuple[float, float] = (18.0, 20.0)

    @property
    def peak_ratio(self) -> float:
        """Eq. 1: BlueFields whose peak equals a host's."""
        return self.socket_gflops * self.sockets / self.device_gflops


THOR = Thor()
