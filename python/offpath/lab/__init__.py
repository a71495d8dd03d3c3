"""Emulated clusters on one machine: see lab/README.md for how they are made."""
