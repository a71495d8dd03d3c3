"""Rows from the formulas of offpath.models."""

from offpath.models import auxiliary, energy, overlap
from offpath.models.off_path import Threads
from offpath.models.testbeds import THOR
from offpath.reproduction.row import Kind, Paper, Published, Row

# The upper end of Fig. 6: almost only computation, so the slowness of a device's core.
SLOWNESS = 2.53
# Application, all communication; on the host and offloaded (tables of the tutorial, seconds a process).
APPLICATIONS = (
    ("P3DFFT++, 16 nodes", 49.53, 17.58, 36.39, 7.54),
    ("P3DFFT++, 32 nodes", 26.07, 10.15, 20.57, 5.46),
    ("Octopus, 8P4T", 637.28, 245.99, 455.49, 138.15),
    ("Octopus, 4P8T", 585.14, 230.66, 461.04, 142.37),
)


def rows() -> list[Row]:
    return [*_minimd(), *_applications()]


def _minimd() -> list[Row]:
    threads = Threads.from_speedup(THOR.force_speedup, THOR.device_cores)

    def row(place: str, what: str, published: Published, ours: float, how: str, why: str = "") -> Row:
        return Row(Paper.MINIMD, place, what, published, ours, Kind.MODEL, how, why)

    return [
        row(
            "Eq. 1",
            "BlueFields whose peak equals a host's",
            Published.exactly(16.4),
            THOR.peak_ratio,
            "peaks of Table I",
        ),
        row(
            "Fig. 8",
            "16 BlueFields over a host of 32 cores",
            Published.at_least(1.75, "times"),
            auxiliary.devices_against_host(16, THOR.device_cores, 32, SLOWNESS, threads),
            "auxiliary",
            "the model has all work scale as the forces do",
        ),
        row(
            "Fig. 14",
            "time of two threads over one, forces on a BlueField",
            Published.at_least(1),
            threads.factor(2),
            "off-path",
        ),
        row(
            "Fig. 15",
            "time of eight BlueField cores over one host core, forces",
            Published.exactly(1),
            SLOWNESS * threads.factor(THOR.device_cores),
            "auxiliary",
        ),
        *(
            row(
                "VI",
                f"more power by a BlueField of {watt:g} W",
                Published.exactly(percent, "%"),
                energy.more_power_percent(watt, THOR.node_W),
                "energy",
            )
            for watt, percent in zip(THOR.device_W, (6, 13), strict=True)
        ),
    ]


def _applications() -> list[Row]:
    return [
        Row(
            Paper.TUTORIAL,
            "table of MPI times",
            f"{name}: application, offloaded",
            Published.exactly(offloaded, "s"),
            overlap.application_s(host, comm, comm_offloaded),
            Kind.MODEL,
            "overlap, from the table's other times",
            "offload also shortens the computing, which is no longer interrupted",
        )
        for name, host, comm, offloaded, comm_offloaded in APPLICATIONS
    ]
