"""How fast a core computes what skeletons compute, in seconds for a unit of work."""

import json
from collections.abc import Mapping
from pathlib import Path

from offpath import reports
from offpath.codes import Code
from offpath.errors import OffpathError

DEFAULT = Path(__file__).with_name("kernels.json")
# The unit of each kernel.
UNITS = {
    "fft3d.point_s": "a point of a 1-D transform, by the logarithm of its length to base 2",
    "halo.cell_s": "a cell of the stencil, in any number of dimensions",
    "halo.face_s": "a number of a face: its cell computed, and the number packed and unpacked",
    "ring-hpl.flop_s": "a floating-point operation of the update",
    "ring-hpl.panel_flop_s": "a floating-point operation of a panel's factorization",
    "bspmm.flop_s": "a floating-point operation of a product of tiles",
    "minimd.force_s": "the forces of one atom in a step",
    "minimd.integrate_s": "the integration of one atom in a step",
    "minimd.neighbour_s": "the neighbours of one atom, at each rebuild",
    "minimd.ghost_s": "one ghost, packed or unpacked",
}

Kernels = Mapping[str, float]


def read(path: Path | None) -> Kernels:
    """The kernels of a file, or those that come with offpath. Errors name the file and the field."""
    file = path or DEFAULT
    content = reports.read(file)
    if not isinstance(content, dict):
        raise OffpathError(Code.INPUT_FILE, f"{file}: an object is wanted, with {', '.join(UNITS)}")
    if unknown := sorted(set(content) - set(UNITS) - {"environment"}):
        raise OffpathError(
            Code.INPUT_FILE, f"{file}: {unknown[0]} is not known", "known: " + ", ".join(UNITS)
        )
    found = {}
    for name in UNITS:
        value = content.get(name)
        if isinstance(value, dict):
            value = value.get("value")
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e3:
            raise OffpathError(
                Code.INPUT_FILE,
                f"{file}: {name}: {json.dumps(value)} is not accepted",
                "give seconds, 0 to 1000",
            )
        found[name] = float(value)
    return found
