"""Signatures of programs: what runs have learned about their collectives, in files that the MPI front end
writes and reads (frontends/mpi/tuning/signature.h, docs/tuning.md)."""

import hashlib
import json as jsonlib
import os
from dataclasses import dataclass
from pathlib import Path

from offpath import file_versions, outputs, reports
from offpath.codes import Code
from offpath.errors import OffpathError

VERSION = 1
_KEYS: dict[str, type] = {
    "program": dict, "mpi": str, "platform": str, "ranks": int, "nodes": int, "runs": int, "written": str,
    "learned": list,
}  # fmt: skip
_ROW: dict[str, type] = {
    "op": str, "ranks": int, "nodes": int, "bytes": int, "calls": int, "phase": str, "computes": str,
    "waits": str,
}  # fmt: skip


def directory() -> Path:
    """Where `offpath run` keeps them, unless OFFPATH_SIGNATURES names another directory."""
    given = os.environ.get("OFFPATH_SIGNATURES", "")
    if given and given not in ("on", "off"):
        return Path(given)
    base = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    return base / "offpath" / "signatures"


@dataclass(frozen=True)
class Signature:
    path: Path
    content: dict

    @property
    def id(self) -> str:
        return identify(self.content)


def identify(content: dict) -> str:
    """The name of the file, as SignatureKey::id() in the front end makes it."""
    parts = (content["program"]["content"], content["mpi"], content["platform"])
    text = "\n".join((*parts, str(content["ranks"]), str(content["nodes"])))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def read(path: Path) -> Signature:
    hint = "`offpath signatures export` writes such files"
    content = reports.read(path)
    if not isinstance(content, dict) or "offpath_signature" not in content:
        raise OffpathError(Code.INPUT_FILE, f"{path} is no signature", hint)
    version = content["offpath_signature"]
    file_versions.check(path, "a signature", version, VERSION, "delete it; the next run writes another")
    wrong = [name for name, kind in _KEYS.items() if not isinstance(content.get(name), kind)]
    wrong += [name for name in ("name", "content") if not isinstance(content.get("program", {}), dict)
              or not isinstance(content.get("program", {}).get(name), str)]  # fmt: skip
    if not wrong:
        wrong = sorted(
            {
                name
                for row in content["learned"]
                for name, kind in _ROW.items()
                if not isinstance(row, dict) or not isinstance(row.get(name), kind)
            }
        )
    if wrong:
        raise OffpathError(Code.INPUT_FILE, f"{path} is damaged: {', '.join(wrong)}", hint)
    return Signature(path, content)


def read_all(where: Path) -> tuple[list[Signature], list[str]]:
    """Those of a directory, the latest first, and what is wrong with the others."""
    found, wrong = [], []
    for path in sorted(where.glob("*.json")):
        try:
            found.append(read(path))
        except OffpathError as error:
            wrong.append(str(error))
    return sorted(found, key=lambda one: one.content["written"], reverse=True), wrong


def find(where: Path, beginning: str) -> Signature:
    """The only one whose id begins like this."""
    matching = [path for path in where.glob("*.json") if beginning and path.stem.startswith(beginning)]
    if len(matching) != 1:
        raise OffpathError(
            Code.OPTION,
            f"{len(matching) or 'no'} signatures begin with {beginning!r}",
            "`offpath signatures list` shows them",
        )
    return read(matching[0])


def write(content: dict, path: Path) -> None:
    outputs.make_folder(path.parent, "signature")
    outputs.write(path, jsonlib.dumps(content, indent=1) + "\n", results=False)


def rows(signature: Signature) -> list[dict]:
    """What is learned, the calls that come most often first."""
    return sorted(signature.content["learned"], key=lambda row: -row["calls"])
