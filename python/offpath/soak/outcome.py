"""How a run of a soak ended."""

import re
from dataclasses import dataclass

from offpath.soak import plan

RIGHT = "finished_right"
EXPLAINED = "ended_with_explanation"
UNEXPLAINED = "ended_without_explanation"
HUNG = "hung"
WRONG = "wrong"
OUTCOMES = (RIGHT, EXPLAINED, UNEXPLAINED, HUNG, WRONG)
GOOD = (RIGHT, EXPLAINED)

# Our messages, without the line at the end that only counts.
_OURS = re.compile(r"^offpath: .*", re.MULTILINE)
# Words that name a lost part: the device, proxy, node, rank or PE.
_NAMES_A_PART = re.compile(r"\b(proxy|device|offpathd|daemon|node|rank|PE)\b")
_SAYS_IT_IS_LOST = re.compile(
    r"\b(lost|gone|died|dead|silent|not answer\w*|no answer|unreachable|closed|memory|refused|not there)\b"
)
# Where a rank is killed, the launcher ends the job and says which rank it was, or which process. MPICH's does
# so on standard output.
_LAUNCHER_NAMES_RANK = re.compile(
    r"process rank \d+|Process name: \[\[\d+,\d+\],\d+\]|PID \d+ RUNNING AT \w+"
)
# A program that verifies its results says so on one of these.
_SAYS_WRONG = re.compile(r"\b(wrong|mismatch|FAILED|differs?|verif\w+ failed)\b|\bseed \d+:")


@dataclass(frozen=True)
class Ended:
    """What a run left to judge."""

    exit_code: int
    timed_out: bool
    stderr: str
    differences: list[str]  # from the run without offload
    stdout: str = ""


def judge(ended: Ended, fault: str) -> tuple[str, str]:
    """The outcome, and the message that explains it."""
    if ended.timed_out:
        return HUNG, ""
    if ended.exit_code == 0:
        return (WRONG, ended.differences[0]) if ended.differences else (RIGHT, "")
    explanation = explanation_in(ended.stderr, ended.stdout, fault)
    if explanation is None:
        return (WRONG if _SAYS_WRONG.search(ended.stderr) else UNEXPLAINED), last_line(ended.stderr)
    if fault in (plan.NONE, plan.RESTART):
        return WRONG, f"without a loss: {explanation}"
    return EXPLAINED, explanation


def explanation_in(stderr: str, stdout: str, fault: str) -> str | None:
    """The first of our lines that names what was lost, or the launcher's that names a killed rank."""
    for line in _OURS.findall(stderr):
        if _NAMES_A_PART.search(line) and _SAYS_IT_IS_LOST.search(line):
            return line
    if fault == plan.RANK:
        for line in [*stderr.splitlines(), *stdout.splitlines()]:
            if _LAUNCHER_NAMES_RANK.search(line):
                return line.strip()
    return None


def last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip(" -")]
    return lines[-1].strip() if lines else ""
