"""Errors that a user can act on. The command prints them without a traceback and exits with `code`."""

from offpath.codes import Code


class OffpathError(Exception):
    """The message says what is wrong, and `hint` what to do about it. `kind` is the code that is printed
    behind the message."""

    def __init__(self, kind: Code, message: str, hint: str = "", code: int = 2):
        super().__init__(message)
        self.kind = kind
        self.hint = hint
        self.code = code


class NamespacesUnavailable(OffpathError):
    """This machine, or this account, does not allow the namespaces that an emulated cluster needs."""
