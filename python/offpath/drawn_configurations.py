"""Configurations of the lab that a seed draws. Nobody chose them, and whoever knows the seed can draw them
again: such a set is blind as long as the simulator has not changed since it was measured."""

import random

from offpath import collectives

PREFIX = "drawn:"  # of a set's name; the seed follows
# Those that can be tuned, and messages.
_OPERATIONS = sorted(row.op for row in collectives.read() if "tune" in row.traits) + ["isend"]
_LINKS = ("500mbit", "1gbit", "2gbit", "unlimited")
_NODES = (2, 3, 4, 5)
_LABS, _OPERATIONS_OF_A_LAB, _SIZES_OF_A_LAB = 4, 3, 2
_SMALLEST_KIB, _LARGEST_KIB = 16, 1024


def seed_of(name: str) -> int | None:
    """The seed in a set's name, 0 or more. None if the name has none."""
    seed = name.removeprefix(PREFIX)
    return int(seed) if name != seed and seed.isascii() and seed.isdigit() else None


def draw(seed: int) -> list[dict]:
    """Labs, as configurations.json describes them: four with local devices and without devices, and one whose
    devices are remote. They depend on the seed only. Sizes are odd numbers of KiB; those of the sets that
    were chosen, and of the calibration, are even."""
    numbers = random.Random(f"configurations/{seed}")
    taken: set[int] = set()
    return [_lab(numbers, taken, remote) for remote in [False] * _LABS + [True]]


def _lab(numbers: random.Random, taken: set[int], remote: bool) -> dict:
    nodes = numbers.choice(_NODES)
    link = numbers.choice(_LINKS[:-1] if remote else _LINKS)
    operations = numbers.sample(_OPERATIONS, _OPERATIONS_OF_A_LAB)
    lab = {"nodes": nodes, "link": link, "points": {" ".join(operations): " ".join(_sizes(numbers, taken))}}
    if remote:
        return lab | {"engines": ["offpath"], "dpu": "remote"}
    # Six ranks and more on one core of a lab do little but take turns.
    return lab | {"ranks_per_node": numbers.choice((1, 2)) if nodes < 3 else 1}


def _sizes(numbers: random.Random, taken: set[int]) -> list[str]:
    found: list[str] = []
    while len(found) < _SIZES_OF_A_LAB:
        # Each power of two has the same share.
        kib = int(_SMALLEST_KIB * (_LARGEST_KIB / _SMALLEST_KIB) ** numbers.random()) | 1
        if kib not in taken:
            taken.add(kib)
            found.append(f"{kib}K")
    return found
