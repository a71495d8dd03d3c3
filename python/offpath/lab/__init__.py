"""Emulated clusters on one machine: docs/lab.md describes them."""
