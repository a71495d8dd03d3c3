import itertools

import pytest

from offpath.errors import OffpathError
from offpath.lab.placement import describe, place


def cores(count, threads=1):
    return [tuple(range(i * threads, (i + 1) * threads)) for i in range(count)]


def test_two_cores_are_one_for_hosts_and_one_for_devices():
    for placement in place(4, 1, "split", cores(2)):
        assert placement.host == (0,) and placement.device == (1,)


@pytest.mark.parametrize(
    "nodes, ranks, count", list(itertools.product((1, 2, 3, 4, 8), (1, 2, 3), (2, 3, 4, 6, 8, 16, 64)))
)
def test_devices_never_share_a_core_with_host_ranks(nodes, ranks, count):
    placements = place(nodes, ranks, "split", cores(count))
    hosts = {cpu for p in placements for cpu in p.host}
    devices = {cpu for p in placements for cpu in p.device}
    assert len(placements) == nodes and not hosts & devices
    assert all(p.host and p.device for p in placements)


def test_with_enough_cores_every_node_has_its_own():
    placements = place(4, 2, "split", cores(12))
    used = [cpu for p in placements for cpu in p.everything]
    assert len(used) == len(set(used)) == 12
    assert all(len(p.host) == 2 and len(p.device) == 1 for p in placements)


def test_hardware_threads_of_a_core_stay_together():
    placement = place(2, 1, "split", cores(4, threads=2))[1]
    assert placement.host == (4, 5) and placement.device == (6, 7)


@pytest.mark.parametrize("mode, count", [("shared", 2), ("split", 1)])
def test_sharing(mode, count):
    placement = place(2, 1, mode, cores(count))[0]
    assert placement.host == placement.device == tuple(range(count))
    assert "share" in describe([placement])


def test_unknown_mode():
    with pytest.raises(OffpathError, match="diagonal"):
        place(2, 1, "diagonal", cores(2))


def test_description_names_the_cores():
    assert describe(place(2, 1, "split", cores(2))) == "host ranks on core 0, devices on core 1"
    assert "node1: host ranks on core 2, devices on core 3" in describe(place(2, 1, "split", cores(4)))
