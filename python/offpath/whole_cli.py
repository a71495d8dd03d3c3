"""The `offpath` command with all its subcommands loaded, for the tools that write its reference."""

from offpath.cli import make_app

app = make_app()
