"""Energy: whether the time that a device saves is worth its power.

    energy with device / energy without = (1 + device_W / node_W) * (1 - saving)

Source: "'Smarter' NICs for faster molecular dynamics" (IPDPS 2022), section VI: 316 W a node on average, 20
to 40 W for a BlueField-2, 18 to 20 W for an adapter without cores. Range: mean power that does not depend
on what runs.
"""

from offpath.models import checks


def more_power_percent(device_W: float, node_W: float) -> float:
    """The device's power relative to the node's."""
    return 100 * checks.number("the device's power", device_W) / checks.positive("the node's power", node_W)


def energy_ratio(saving: float, device_W: float, node_W: float, replaced_W: float = 0.0) -> float:
    """Energy of a run with the device relative to one without. `saving`: the share of the time that it saves,
    below 1; negative if it costs time. `replaced_W`: the power of an adapter that the device makes
    unnecessary."""
    checks.number("the saving", saving, -1e6, 1.0)
    checks.number(
        "the power of the replaced adapter", replaced_W, 0.0, checks.positive("the node's power", node_W)
    )
    checks.number("the device's power", device_W)
    return (node_W + device_W - replaced_W) / node_W * (1 - saving)


def break_even_saving(device_W: float, node_W: float, replaced_W: float = 0.0) -> float:
    """The share of the time that must be saved for equal energy. It is 0 or less if the device needs no more
    than what it replaces."""
    return 1 - 1 / energy_ratio(0.0, device_W, node_W, replaced_W)
