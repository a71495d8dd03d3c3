"""A headless Chromium for tests."""

import contextlib
import os
import shutil
import signal
import subprocess

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


@contextlib.contextmanager
def opened(page, profile):
    """Opens a page for as long as the context lasts. Yields the path of the browser's log."""
    path = profile.with_suffix(".log")
    with open(path, "wb") as log:
        # The command may be a script, which leaves the browser behind if it alone is ended.
        process = subprocess.Popen(
            command(profile, "--remote-debugging-port=0", page),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield path
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)
