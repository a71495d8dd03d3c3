"""Every warning and error that a user can meet ends with a code, and docs/troubleshooting.md has each one."""

import re
from pathlib import Path

import pytest

from offpath.codes import Code

SOURCE = Path(__file__).resolve().parents[2]
PAGE = (SOURCE / "docs/troubleshooting.md").read_text()
# The functions that write lines for users, and lines of information.
SINKS = {
    "src/client/device_texts.cpp",  # what kernels print
    "frontends/mpi/runtime/runtime.cpp",  # say() and warn()
    "frontends/shmem/failure.cpp",  # complain()
}
INFORMS = ("bytes copied to it", "bytes of images sent to it")
# Words that only warnings have.
WARNS = re.compile(r"\b(failed|cannot|could not|lost|refused|not supported|no effect|not accepted|missing)\b")


def sources(*folders: str, suffixes: tuple[str, ...] = (".cpp", ".h", ".c")):
    for folder in folders:
        for path in sorted((SOURCE / folder).rglob("*")):
            if path.suffix in suffixes:
                yield path.relative_to(SOURCE).as_posix(), path.read_text()


def named_codes() -> dict[str, int]:
    header = (SOURCE / "src/base/codes.h").read_text()
    return {name: int(number) for name, number in re.findall(r"^    (\w+) = (\d+),$", header, re.MULTILINE)}


def call_at(text: str, start: int) -> str:
    """The text of the call whose opening parenthesis is the first one at or after `start`."""
    depth = 0
    for at in range(text.index("(", start), len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return text[start : at + 1]
    return text[start:]


def test_the_page_has_the_codes_of_the_sources_and_no_others():
    used = set(named_codes().values())
    for _, text in sources("src", "frontends"):
        used |= {int(number) for number in re.findall(r"\[OFP-(\d{4})\]", text)}
    used |= set(Code)
    titles = re.findall(r"^### OFP-(\d{4})$", PAGE, re.MULTILINE)
    assert len(set(titles)) == len(titles)
    assert titles == sorted(titles)
    assert {int(number) for number in titles} == used


def test_links_of_the_page_lead_to_codes():
    assert set(re.findall(r"\(#ofp-(\d{4})\)", PAGE)) <= set(
        re.findall(r"^### OFP-(\d{4})$", PAGE, re.MULTILINE)
    )


def test_every_named_code_is_used():
    text = "\n".join(text for name, text in sources("src", "frontends") if name != "src/base/codes.h")
    unused = [
        name
        for name, number in named_codes().items()
        if f"Code::{name}" not in text and f"[OFP-{number:04}]" not in text
    ]
    assert not unused


def test_what_goes_to_stderr_directly_has_a_code():
    """The functions of base/log.h and of the front ends cannot be called without one."""
    writes = re.compile(r"\b(?:std::)?(?:fprintf\(stderr|dprintf\(2|fwrite\((?=[^;]*\bstderr\b))")
    without = []
    for name, text in sources("src", "frontends"):
        for match in writes.finditer(text):
            call = call_at(text, match.start())
            if name in SINKS or any(words in call for words in INFORMS):
                continue
            if "OFP-" not in call and "with_code(" not in call:
                without.append(f"{name}: {call}")
    assert not without


def test_lines_of_information_are_no_warnings():
    found = []
    for name, text in sources("frontends/mpi"):
        for match in re.finditer(r"\bsay\(", text):
            call = call_at(text, match.start())
            # These are parts of the summary.
            parts = ("were run again", "were sent again", "nothing was offloaded")
            if WARNS.search(call) and not any(part in call for part in parts):
                found.append(f"{name}: {call}")
    assert not found


def test_what_the_plugin_for_slurm_says_has_a_code():
    for name, text in sources("frontends/slurm", suffixes=(".c",)):
        for match in re.finditer(r"\b(?:offpath_step_say|slurm_error)\(", text):
            call = call_at(text, match.start())
            # These pass on what has a code already.
            passed_on = ('"%s", problem)', '"device: %s", line)', "const char* format, ...)")
            assert "OFP-06" in call or call.endswith(passed_on), f"{name}: {call}"


def test_every_code_of_the_command_is_used():
    """A warning or an error of the command cannot be made without a code, which mypy checks."""
    text = "\n".join(text for _, text in sources("python", suffixes=(".py",)))
    assert [code.name for code in Code if f"Code.{code.name}" not in text] == []


@pytest.mark.parametrize(
    "arguments", [["lab", "run", "--link", "fast", "--", "true"], ["lab", "run", "--unknown"]]
)
def test_the_command_prints_the_code(offpath, arguments):
    done = offpath(*arguments)
    assert done.returncode == 2 and "[OFP-0801]" in done.stderr, done.stderr
