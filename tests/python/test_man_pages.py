"""The manual pages that `cmake --install` writes from the help of the command."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from offpath.whole_cli import app

SCRIPT = Path(__file__).resolve().parents[2] / "scripts/man_pages.py"


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> dict[str, Path]:
    where = tmp_path_factory.mktemp("man")
    subprocess.run([sys.executable, str(SCRIPT), str(where)], check=True)
    return {path.stem: path for path in where.glob("man1/*.1")}


def commands(name, command):
    yield name, command
    for sub, entry in getattr(command, "commands", {}).items():
        yield from commands(f"{name}-{sub}", entry)


def test_every_command_has_a_page_with_all_its_options(pages):
    found = dict(commands("offpath", typer.main.get_command(app)))
    assert found.keys() == pages.keys()
    for name, command in found.items():
        text = pages[name].read_text().replace("\\-", "-")
        for option in command.params:
            if option.param_type_name == "option" and not option.hidden:
                assert re.search(rf"^\.B .*{re.escape(option.opts[0])}\b", text, re.MULTILINE), (
                    name,
                    option.opts,
                )


def test_scripts_beside_the_daemon_have_pages_from_their_comments(tmp_path):
    daemon = tmp_path / "bin/offpathd"
    daemon.parent.mkdir()
    daemon.write_text("#!/bin/sh\necho 'Usage: offpathd'\n")
    (daemon.parent / "oshrun").write_text(
        "#!/bin/sh\n# oshrun -n PES PROGRAM: starts a program. It\n# waits.\n"
        "#   A_NAME   what it says\nexec x\n# not this\n"
    )
    for script in daemon.parent.iterdir():
        script.chmod(0o755)
    subprocess.run([sys.executable, str(SCRIPT), str(tmp_path / "man"), str(daemon)], check=True)
    text = (tmp_path / "man/man1/oshrun.1").read_text().replace("\\-", "-")
    assert ".SH NAME\noshrun - starts a program\n" in text
    assert ".B oshrun\n-n PES PROGRAM\n" in text
    assert ".SH DESCRIPTION\nStarts a program. It waits.\n" in text
    assert ".TP\n.B A_NAME\nwhat it says\n" in text
    assert "not this" not in text and not (tmp_path / "man/man1/oshcc.1").exists()


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_groff_has_nothing_to_warn_of(pages):
    for path in pages.values():
        done = subprocess.run(
            ["groff", "-man", "-Tascii", "-ww", "-b", "-z", str(path)], capture_output=True, text=True
        )
        assert done.returncode == 0 and not done.stderr, (path, done.stderr)
