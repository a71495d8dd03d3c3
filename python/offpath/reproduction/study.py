"""All rows, in the order of the page."""

from offpath.artifacts import Artifacts
from offpath.reproduction import by_measurement, by_models, by_simulation
from offpath.reproduction.row import Paper, Row


def rows(artifacts: Artifacts) -> list[Row]:
    found = [*by_models.rows(), *by_simulation.rows(artifacts), *by_measurement.rows()]
    order = list(Paper)
    return sorted(found, key=lambda row: order.index(row.paper))  # stable: the order within a paper stays
