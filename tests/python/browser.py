"""A headless Chromium for tests."""

import contextlib
import os
import shutil
import signal
import subprocess

import pytest

_NAMES = ("chromium-headless-shell", "chromium", "google-chrome")


def program():
    """The path of the browser, or None."""
    return next(filter(None, map(shutil.which, _NAMES)), None)


def command(profile, *arguments):
    """The command line of a browser that keeps its files in `profile`. Skips the test if there is none."""
    found = program()
    if found is None:
        pytest.skip("no Chromium is there (Debian's chromium-headless-shell)")
    return [
        found, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}",
        "--enable-logging=stderr", *arguments,
    ]  # fmt: skip


@contextlib.contextmanager
def opened(page, profile):
    """Opens a page for as long as the context lasts. Yields the path of the browser's log."""
    path = profile.with_suffix(".log")
    with open(path, "wb") as log, _started(command(profile, "--remote-debugging-port=0", page), log, log):
        yield path


def dump(page, profile, *options):
    """Opens a page and returns its elements after its scripts have run, and the browser's log."""
    shown, log = profile.with_suffix(".html"), profile.with_suffix(".log")
    with (
        open(shown, "wb") as out,
        open(log, "wb") as err,
        _started(command(profile, *options, "--dump-dom", page), out, err) as process,
    ):
        process.wait(60)
    return shown.read_text(), log.read_text()


@contextlib.contextmanager
def _started(arguments, out, err):
    # The command may be a script, which leaves the browser behind if it alone is ended.
    process = subprocess.Popen(arguments, stdout=out, stderr=err, start_new_session=True)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)
