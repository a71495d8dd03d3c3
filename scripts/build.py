#!/usr/bin/env python3
"""Builds a tree, and says where it is: on a terminal as ninja does, in a log in a line a minute.

usage: build.py TREE [TARGET...]     JOBS sets how many compilers run at the same time

Compilers' messages are shown at once. Exits as the build does.
"""

import os
import re
import subprocess
import sys
import time

_STEP = re.compile(r"\[(\d+)/(\d+)\] ")
_EVERY_S = 60.0


def main(tree: str, *targets: str) -> int:
    command = ["cmake", "--build", tree, "-j", os.environ.get("JOBS") or str(os.cpu_count() or 1)]
    if targets:
        command += ["--target", *targets]
    if sys.stdout.isatty():
        return subprocess.call(command)
    begin = last = time.monotonic()
    done = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as build:
        assert build.stdout is not None
        for line in build.stdout:
            step = _STEP.match(line)
            if step is None:
                if line != "ninja: no work to do.\n":
                    print(line, end="", flush=True)
                continue
            done, all_steps, now = int(step[1]), int(step[2]), time.monotonic()
            if done and now - last >= _EVERY_S:
                last = now
                left = (now - begin) / done * (all_steps - done)
                print(f"build: {done} of {all_steps} steps, about {left / 60:.0f} min left", flush=True)
    if done and build.returncode == 0:
        print(f"build: {done} steps in {time.monotonic() - begin:.0f} s", flush=True)
    return build.returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) > 1 else print(__doc__, file=sys.stderr) or 2)
