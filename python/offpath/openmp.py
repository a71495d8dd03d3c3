"""Programs with OpenMP target regions: LLVM's libomptarget finds offpath's plug-ins by LD_LIBRARY_PATH."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from offpath import mpi_library
from offpath.artifacts import Artifacts
from offpath.codes import Code
from offpath.errors import OffpathError
from offpath.preload import joined

_RUNTIME = re.compile(r"libomptarget\.so")


def has_regions(command: list[str]) -> bool:
    """Whether a program among the words of a command line uses libomptarget."""
    words = command[1:] if command and mpi_library.launcher_of(command) else command
    return any(
        _RUNTIME.match(library)
        for word in words
        if not word.startswith("-") and "=" not in word and (path := shutil.which(word))
        for library in mpi_library.libraries_of(Path(path))
    )


def llvm_folder(program: Path) -> Path:
    """The folder of a program's libomptarget, which also has LLVM's own plug-ins."""
    places = mpi_library.libraries_of(program)
    place = next((place for library, place in places.items() if _RUNTIME.match(library)), "")
    if not place:
        raise OffpathError(Code.NOT_INSTALLED, f"{program} finds no libomptarget", "install libomp-16-dev")
    return Path(place).parent


def variables(
    artifacts: Artifacts, given: Mapping[str, str], inherited: Mapping[str, str], needed: bool = True
) -> dict[str, str]:
    """The variables with which a program finds the plug-ins, in addition to `given` and `inherited`. If they
    are not `needed`, the program may still load a library with regions while it runs; the result is then
    empty if the plug-ins are not built."""
    if not needed and not artifacts.has_openmp_plugins:
        return {}
    before = given.get("LD_LIBRARY_PATH") or inherited.get("LD_LIBRARY_PATH")
    return {"LD_LIBRARY_PATH": joined(os.pathsep, str(artifacts.openmp_plugins), before)}


# The order in which libomptarget looks for plug-ins, and therefore numbers their devices.
_PLUGINS = ("libomptarget.rtl.x86_64.nextgen.so", "libomptarget.rtl.aarch64.nextgen.so")
_ASK = """
import ctypes, sys
plugin = ctypes.CDLL(sys.argv[1])
for number in range(plugin.__tgt_rtl_number_of_devices()):
    plugin.__tgt_rtl_print_device_info(number)
ctypes.CDLL(None).fflush(None)
"""


def target_devices(artifacts: Artifacts, remote: str | None = None, patience_s: float = 30) -> list[dict]:
    """The devices that OpenMP numbers 0, 1, ... in a program that is started with this environment, as the
    plug-ins themselves report them. `remote` replaces OFFPATH_DEVICES. A device that does not answer has a
    row with the reason."""
    environment = dict(os.environ) | ({"OFFPATH_DEVICES": remote} if remote else {})
    found: list[dict] = []
    missing: list[dict] = []
    for name in _PLUGINS:
        plugin = artifacts.openmp_plugins / name
        if not plugin.exists():
            continue
        try:
            done = subprocess.run(
                [sys.executable, "-c", _ASK, str(plugin)],
                capture_output=True,
                env=environment,
                text=True,
                timeout=patience_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            missing.append({"number": None, "device": f"{name}: no answer within {patience_s:g} s"})
            continue
        found += _devices_in(done.stdout, len(found))
        missing += _complaints(done.stderr)
    return found + missing


# Asks all plug-ins, and prints what they said as one line.
_ASK_ALL = """
import json, os, subprocess, sys
ask, *plugins = sys.argv[1:]
asked = [[sys.executable, "-c", ask, plugin] for plugin in plugins]
said = [subprocess.run(words, capture_output=True, text=True) for words in asked]
print(json.dumps({"node": os.uname().nodename, "said": [[done.stdout, done.stderr] for done in said]}))
"""


def asking_command(artifacts: Artifacts) -> list[str]:
    """A program that prints the target devices of the node that it runs on, for `devices_of_nodes`."""
    plugins = [str(artifacts.openmp_plugins / name) for name in _PLUGINS]
    return [sys.executable, "-c", _ASK_ALL, _ASK, *(plugin for plugin in plugins if Path(plugin).exists())]


def devices_of_nodes(said: str) -> list[dict]:
    """As target_devices, for each node that ran the program of `asking_command`."""
    rows: list[dict] = []
    answers = _answers_in(said)
    for answer in sorted(answers, key=lambda answer: answer["node"]):
        mine: list[dict] = []
        for words, _ in answer["said"]:
            mine += _devices_in(words, len(mine))
        for _, complaints in answer["said"]:
            mine += _complaints(complaints)
        rows += [{"node": answer["node"]} | row for row in mine]
    return rows


def _answers_in(said: str) -> list[dict]:
    """The objects that the nodes printed. The launcher may join the lines of several nodes."""
    decoder = json.JSONDecoder()
    answers = []
    at = said.find('{"node"')
    while at >= 0:
        answer, end = decoder.raw_decode(said, at)
        answers.append(answer)
        at = said.find('{"node"', end)
    return answers


def _devices_in(said: str, first: int) -> list[dict]:
    """What a plug-in prints of its devices; their numbers begin with `first`."""
    found: list[dict] = []
    for block in said.split("offpath device ")[1:]:
        name, *rest = [line.strip() for line in block.strip().splitlines()]
        facts = dict(line.split(": ", 1) for line in rest)
        used, limit = facts["Image bytes"].split(" of ")
        found.append(
            {
                "number": first + len(found),
                "device": name,
                "architecture": facts["Architecture"],
                "cpus": int(facts["CPUs"]),
                "attached": facts["Attached"],
                "images_kept": int(facts["Images kept"]),
                "image_bytes": int(used),
                "image_cache_bytes": int(limit),
                "images_found": int(facts["Images found"]),
                "images_dropped": int(facts["Images dropped"]),
            }
        )
    return found


def _complaints(said: str) -> list[dict]:
    return [{"number": None, "device": line.removeprefix("offpath: ")} for line in said.splitlines()]
