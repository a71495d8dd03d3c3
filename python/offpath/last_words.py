"""What a job said when it failed."""

import re

# What Open MPI's launcher adds when a rank has failed, whatever the reason.
_LAUNCHER = re.compile(
    r"terminated normally, but|mpirun noticed that process|mpirun has exited due to process"
    r"|prterun (noticed|detected)"
)
_RULE = re.compile(r"^-{50,}$")


def last_words(stdout: str, stderr: str, lines: int = 15) -> str:
    """The last `lines` lines of what it said, without what a launcher says of each job that fails. If it
    said nothing else, those."""
    text = (stderr.strip() or stdout.strip()).splitlines()
    own: list[str] = []
    block: list[str] | None = None  # what stands between two rules
    for line in text:
        if not _RULE.match(line.strip()):
            (own if block is None else block).append(line)
        elif block is None:
            block = []
        else:
            if not _LAUNCHER.search("\n".join(block)):
                own += block
            block = None
    own += block or []
    return "\n".join((own if any(line.strip() for line in own) else text)[-lines:])
