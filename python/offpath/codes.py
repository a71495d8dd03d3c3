"""Codes of this command's warnings and errors. docs/troubleshooting.md says for each code what it means and
what to do. Messages share a code if a user does the same about them. A number, once given, keeps its meaning.

The programs and libraries have the numbers below 801 (src/base/codes.h). A test compares all of them with the
page.
"""

from enum import IntEnum


class Code(IntEnum):
    OPTION = 801
    NOT_INSTALLED = 802
    NO_LAB = 803
    INPUT_FILE = 804
    OUTPUT_FILE = 805
    DEVICES = 806
    DAEMON = 807
    JOB_FAILED = 808
    WRONG_RESULTS = 809
    MPI_LIBRARY = 810
    LAB_FAILED = 811
    NOTHING_TO_DO = 812
    SHARED_CORES = 813
    DROPPED = 814

    def __str__(self) -> str:
        return f"OFP-{self:04}"


def with_code(message: str, code: Code) -> str:
    """The message with its code at the end of its first line, since further lines quote a log."""
    first, newline, rest = message.partition("\n")
    return f"{first} [{code}]{newline}{rest}"
