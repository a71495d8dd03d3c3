"""Where system tools such as `ip` and `tc` are found. On Debian, `tc` is in /usr/sbin.
PATH of an ordinary user does not contain that."""

import os
import shutil

_DIRECTORIES = ["/usr/sbin", "/sbin"]


def search_path() -> str:
    """PATH, and after it the directories of system tools."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), *_DIRECTORIES])


def find(tool: str) -> str | None:
    return shutil.which(tool, path=search_path())


def environment() -> dict[str, str]:
    """For processes that start system tools, and nothing of the user's."""
    return dict(os.environ) | {"PATH": search_path()}
