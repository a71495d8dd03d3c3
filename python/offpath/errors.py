"""Errors that a user can act on. The command prints them without a traceback and exits with `code`."""


class OffpathError(Exception):
    """The message says what is wrong. `hint` says what to do about it."""

    def __init__(self, message: str, hint: str = "", code: int = 2):
        super().__init__(message)
        self.hint = hint
        self.code = code


class NamespacesUnavailable(OffpathError):
    """This machine, or this account, does not allow the namespaces that an emulated cluster needs."""
