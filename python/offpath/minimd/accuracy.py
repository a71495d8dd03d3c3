"""Figure 13: how far temperatures drift from those of a run that rebuilds its lists in every step.

The temperature divergence rate (TDR) is the slope of dT(n) = T(n) - T_ref(n) by least squares, with n every
10 steps. Once trajectories have decorrelated, its sign means nothing, and slopes cancel. Therefore the rows
also have the slope over the first 300 steps, and the largest |dT|.
"""

import math

from offpath.codes import Code
from offpath.errors import OffpathError
from offpath.minimd.case import BALANCED, HOSTS, PAPER, Case
from offpath.minimd.measure import Results
from offpath.minimd.spec import Spec

SAMPLE = 10  # steps between temperatures
EARLY = 300
SCHEMES = (HOSTS, PAPER, BALANCED)


def slope(x: list[float], y: list[float]) -> tuple[float, float]:
    """The slope of the least-squares line, and its standard error, which is 0 if there are only
    two points."""
    n = len(x)
    if n < 2 or n != len(y):
        raise ValueError(f"{n} points make no line")
    mean_x, mean_y = math.fsum(x) / n, math.fsum(y) / n
    width = math.fsum((a - mean_x) ** 2 for a in x)
    rate = math.fsum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / width
    rest = math.fsum((b - mean_y - rate * (a - mean_x)) ** 2 for a, b in zip(x, y, strict=True))
    return rate, math.sqrt(rest / (n - 2) / width) if n > 2 else 0.0


def divergence(thermo: list[dict], reference: list[dict]) -> dict:
    """The divergence between two tables of the same steps."""
    steps = [row["step"] for row in thermo]
    if steps != [row["step"] for row in reference]:
        raise OffpathError(
            Code.INPUT_FILE, "the tables of a run and of its reference have different steps", code=1
        )
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
    """The drift over the steps of an atom's total energy, 1.5 T + U in Lennard-Jones units."""
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
