"""Errors that a user can act on. They are printed without a traceback, and the command exits with `code`."""


class OffpathError(Exception):
    """What was wrong, and in `hint` what to do about it."""

    def __init__(self, message: str, hint: str = "", code: int = 2):
        super().__init__(message)
        self.hint = hint
        self.code = code


class NamespacesUnavailable(OffpathError):
    """This machine or account cannot make the namespaces that an emulated cluster needs."""
