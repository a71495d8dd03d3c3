"""Runs the tests of a build: see __main__.py."""
