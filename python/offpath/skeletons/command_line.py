"""The command lines of skeletons: those of the programs that they stand for."""

import argparse
from collections.abc import Callable
from typing import NoReturn

from offpath.codes import Code
from offpath.errors import OffpathError


class Parser(argparse.ArgumentParser):
    """Options as the program has them. Errors are OffpathErrors that name the skeleton."""

    def __init__(self, program: str, ignored: tuple[str, ...] = ()) -> None:
        super().__init__(prog=program, add_help=False, allow_abbrev=False)
        for flag in ignored:
            self.add_argument(flag, action="store_true", help=argparse.SUPPRESS)

    def error(self, message: str) -> NoReturn:
        raise self.refuse(message)

    def refuse(self, message: str) -> OffpathError:
        known = sorted(name for action in self._actions for name in action.option_strings)
        return OffpathError(
            Code.OPTION,
            f"skeleton {self.prog}: {message}",
            f"it takes {', '.join(known)}, as the program does",
        )


def within(least: int, most: int) -> Callable[[str], int]:
    """Accepts whole numbers from `least` to `most`."""

    def accept(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not accepted; {least} to {most} are")
        return number

    return accept


def sizes(count: int) -> Callable[[str], tuple[int, ...]]:
    """Accepts `count` positive numbers with x between them, such as 128x96x64, or one for all."""

    def accept(text: str) -> tuple[int, ...]:
        parts = text.split("x")
        if not all(part.isdigit() and 0 < int(part) < 10**9 for part in parts) or len(parts) not in (
            1,
            count,
        ):
            raise argparse.ArgumentTypeError(
                f"{text!r} is not accepted; write 128 or {'x'.join(['128'] * count)}"
            )
        numbers = tuple(int(part) for part in parts)
        return numbers * count if len(numbers) == 1 else numbers

    return accept
