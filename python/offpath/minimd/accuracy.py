"""Figure 13: how far temperatures drift from those of a run that rebuilds its lists in every step.

The temperature divergence rate (TDR) is the slope of dT(n) = T(n) - T_ref(n), n every 10 steps, by least
squares. Its sign means nothing once trajectories have decorrelated, and then slopes cancel: the slope of the
first 300 steps and the largest |dT| stand beside it.
"""

import math

from offpath.errors import OffpathError
from offpath.minimd.case import BALANCED, HOSTS, PAPER, Case
from offpath.minimd.measure import Results
from offpath.minimd.spec import Spec

SAMPLE = 10  # steps between temperatures
EARLY = 300
SCHEMES = (HOSTS, PAPER, BALANCED)


def slope(x: list[float], y: list[float]) -> tuple[float, float]:
    """Of the least-squares line, with its standard error; 0 where two points leave none."""
    n = len(x)
    if n < 2 or n != len(y):
        raise ValueError(f"{n} points make no line")
    mean_x, mean_y = math.fsum(x) / n, math.fsum(y) / n
    width = math.fsum((a - mean_x) ** 2 for a in x)
    rate = math.fsum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / width
    rest = math.fsum((b - mean_y - rate * (a - mean_x)) ** 2 for a, b in zip(x, y, strict=True))
    return rate, math.sqrt(rest / (n - 2) / width) if n > 2 else 0.0


def divergence(thermo: list[dict], reference: list[dict]) -> dict:
    """Of two tables of the same steps."""
    steps = [row["step"] for row in thermo]
    if steps != [row["step"] for row in reference]:
        raise OffpathError("a run and its reference have other steps in their tables", code=1)
    delta = [row["t"] - other["t"] for row, other in zip(thermo, reference, strict=True)]
    rate, error = slope(steps, delta)
    early = [(n, d) for n, d in zip(steps, delta, strict=True) if n <= EARLY]
    early_rate, early_error = slope([n for n, _ in early], [d for _, d in early])
    return {
        "tdr": rate,
        "tdr_error": error,
        "tdr_300": early_rate,
        "tdr_300_error": early_error,
        "max_dt": max(map(abs, delta)),
        "max_dt_300": max(abs(d) for _, d in early),
    }


def energy_drift(thermo: list[dict]) -> dict:
    """Total energy an atom, 1.5 T + U in Lennard-Jones units, by step."""
    energy = [1.5 * row["t"] + row["u"] for row in thermo]
    rate, error = slope([row["step"] for row in thermo], energy)
    return {
        "energy_drift": rate,
        "energy_drift_error": error,
        "energy_change": energy[-1] - energy[0],
        "max_energy_change": max(abs(e - energy[0]) for e in energy),
    }


def tdr_cases(spec: Spec) -> list[Case]:
    return [
        case
        for atoms in spec.atoms
        for nodes in spec.every_nodes
        for skin in spec.skins
        for case in (
            _reference(spec, atoms, nodes, skin),
            *(
                spec.case(scheme, atoms, nodes, interval=interval, skin=skin, thermo_every=SAMPLE)
                for scheme in SCHEMES
                for interval in spec.intervals
            ),
        )
    ]


def tdr_rows(spec: Spec, results: Results) -> list[dict]:
    rows = []
    for case in dict.fromkeys(tdr_cases(spec)):
        reference = results[_reference(spec, case.atoms, case.nodes, case.skin)].thermo
        thermo = results[case].thermo
        rows.append(results.row(case) | divergence(thermo, reference) | energy_drift(thermo))
    return rows


def _reference(spec: Spec, atoms: int, nodes: int, skin: float) -> Case:
    return spec.case(HOSTS, atoms, nodes, interval=1, skin=skin, thermo_every=SAMPLE)
