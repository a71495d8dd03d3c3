"""A headless Chromium for tests."""

import shutil

import pytest

_NAMES = ("chromium-headless-shell", "chromium", "google-chrome")


def command(profile, *arguments):
    """The command line of a browser that keeps its files in `profile`. Skips the test if there is none."""
    program = next(filter(None, map(shutil.which, _NAMES)), None)
    if program is None:
        pytest.skip("no Chromium is there (Debian's chromium-headless-shell)")
    return [
        program, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}",
        "--enable-logging=stderr", *arguments,
    ]  # fmt: skip
