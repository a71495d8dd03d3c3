"""man_pages.py OUT [OFFPATHD]: writes manual pages below the folder OUT, from the help of the command and of
the daemon: man1/offpath.1, and a page for each command such as man1/offpath-run.1. If the program OFFPATHD is
given, also man8/offpathd.8, and a page for each shell script beside it, such as man1/oshrun.1.

All text comes from the help, and for shell scripts from the comment at their top, so the pages say what the
programs say.
"""

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import typer

# Scripts that stand beside the daemon.
SCRIPTS = ("oshrun", "oshcc", "oshc++", "oshcxx", "offpath-clang", "offpath-clang++")
ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))
_VERSION = re.search(r"^project\(offpath VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.M)
VERSION = _VERSION[1] if _VERSION else ""
SEE = "The pages in docs/ of the source tree, or of /usr/share/doc/offpath, say more."


def roff(text: str) -> str:
    """Text as roff takes it literally."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "")
    return "\n".join("\\&" + line if line[:1] in (".", "'") else line for line in text.splitlines())


def paragraphs(text: str) -> str:
    blocks = re.split(r"\n\s*\n", text.strip())
    return "\n.PP\n".join(roff(" ".join(block.split())) for block in blocks)


def head(title: str, section: int, summary: str) -> str:
    name = title.lower()
    return (
        f'.TH {title.upper()} {section} "" "offpath {VERSION}" "offpath"\n'
        f".SH NAME\n{roff(name)} \\- {roff(summary)}\n"
    )


def first_sentence(text: str) -> str:
    sentence = re.split(r"\.(?:\s|$)", " ".join(text.split()), maxsplit=1)[0]
    return sentence if sentence[:2].isupper() else sentence[:1].lower() + sentence[1:]


def options(command) -> str:
    lines = []
    for option in command.params:
        if option.param_type_name != "option" or getattr(option, "hidden", False):
            continue
        names = ", ".join([*option.opts, *option.secondary_opts])
        value = "" if option.is_flag else f" {option.metavar or option.name.upper()}"
        lines.append(f".TP\n.B {roff(names + value)}\n{roff(' '.join((option.help or '').split()))}")
    return ".SH OPTIONS\n" + "\n".join(lines) + "\n" if lines else ""


def arguments(command) -> str:
    return " ".join(p.metavar or p.name.upper() for p in command.params if p.param_type_name == "argument")


def page(name: str, command) -> str:
    title = name.replace(" ", "-")
    text = head(title, 1, first_sentence(command.help or ""))
    commands = getattr(command, "commands", {})
    tail = "COMMAND ..." if commands else arguments(command)
    text += f".SH SYNOPSIS\n.B {roff(name)}\n[options] {roff(tail)}\n"
    text += f".SH DESCRIPTION\n{paragraphs(command.help or '')}\n"
    if commands:
        entries = [
            f".TP\n.BR {roff(title)}\\-{roff(sub)} (1)\n{roff(first_sentence(entry.help or ''))}."
            for sub, entry in commands.items()
        ]
        text += ".SH COMMANDS\n" + "\n".join(entries) + "\n"
    return text + options(command) + f".SH SEE ALSO\n{roff(SEE)}\n"


def daemon_page(program: str) -> str:
    said = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    about, _, listed = said.partition("Options:\n")
    about = re.sub(r"^Usage:.*$", "", about, flags=re.M)
    text = head("offpathd", 8, "moves the communication of HPC programs off the host's cores")
    text += f".SH SYNOPSIS\n.B offpathd\n[options]\n.SH DESCRIPTION\n{paragraphs(about)}\n.SH OPTIONS\n"
    for line in listed.splitlines():
        match = re.match(r"  (-\S.*?)(?:\s{2,}(.*))?$", line)
        if match:
            text += f".TP\n.B {roff(match[1])}\n" + (roff(match[2]) + "\n" if match[2] else "")
        elif line.strip():
            text += roff(line.strip()) + "\n"
    return text + f".SH SEE ALSO\n.BR offpath (1)\n.PP\n{roff(SEE)}\n"


def script_page(script: Path) -> str:
    """The page of a script whose comment is `NAMES [ARGUMENTS]: what it does.`, then maybe indented lines
    `VARIABLE   meaning`."""
    lines = []
    for line in script.read_text().splitlines()[1:]:
        if not line.startswith("#"):
            break
        lines.append(line[1:])
    flowing = " ".join(line.strip() for line in lines if not line.startswith("   "))
    usage, _, about = flowing.partition(": ")
    words = usage.partition(f"{script.name} ")[2]
    about = about[:1].upper() + about[1:]
    text = head(script.name, 1, first_sentence(about))
    text += f".SH SYNOPSIS\n.B {roff(script.name)}\n{roff(words or '[options] FILE ...')}\n"
    text += f".SH DESCRIPTION\n{paragraphs(about)}\n"
    variables = [re.split(r"\s{2,}", line.strip(), maxsplit=1) for line in lines if line.startswith("   ")]
    if variables:
        entries = [f".TP\n.B {roff(name)}\n{roff(meaning)}" for name, meaning in variables]
        text += ".SH ENVIRONMENT\n" + "\n".join(entries) + "\n"
    return text + f".SH SEE ALSO\n.BR offpath (1)\n.PP\n{roff(SEE)}\n"


def walk(name: str, command) -> Iterable[tuple[str, object]]:
    yield name, command
    for sub, entry in getattr(command, "commands", {}).items():
        yield from walk(f"{name} {sub}", entry)


def main() -> None:
    from offpath.whole_cli import app

    where = Path(sys.argv[1])
    (where / "man1").mkdir(parents=True, exist_ok=True)
    for name, command in walk("offpath", typer.main.get_command(app)):
        (where / "man1" / f"{name.replace(' ', '-')}.1").write_text(page(name, command))
    if len(sys.argv) > 2:
        (where / "man8").mkdir(exist_ok=True)
        (where / "man8/offpathd.8").write_text(daemon_page(sys.argv[2]))
        for script in (Path(sys.argv[2]).with_name(name) for name in SCRIPTS):
            if script.exists():
                (where / "man1" / f"{script.name}.1").write_text(script_page(script))


if __name__ == "__main__":
    main()
