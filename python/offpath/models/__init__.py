"""Analytic models of what offload brings: closed formulas, for questions that need no simulation.

Each module states its source, its units and where it holds. All times are in seconds, rates in bytes per
second, sizes in bytes, and shares between 0 and 1. Bad input is an OffpathError that names the argument and
its value. docs/models.md describes the models and their errors.
"""
