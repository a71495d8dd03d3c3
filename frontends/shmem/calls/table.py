"""Reads calls.txt. The first lines of that file explain its syntax."""

import re
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

TYPES = {
    "float": "float", "double": "double", "longdouble": "long double", "char": "char", "schar": "signed char",
    "short": "short", "int": "int", "long": "long", "longlong": "long long", "uchar": "unsigned char",
    "ushort": "unsigned short", "uint": "unsigned int", "ulong": "unsigned long",
    "ulonglong": "unsigned long long", "int8": "int8_t", "int16": "int16_t", "int32": "int32_t",
    "int64": "int64_t", "uint8": "uint8_t", "uint16": "uint16_t", "uint32": "uint32_t", "uint64": "uint64_t",
    "size": "size_t", "ptrdiff": "ptrdiff_t", "complexd": "double _Complex", "complexf": "float _Complex",
}  # fmt: skip
# Types that are the same as another type on every 64-bit Linux: a generic selection may name a type once.
SAME = {
    "int8": "schar", "int16": "short", "int32": "int", "int64": "long", "uint8": "uchar", "uint16": "ushort",
    "uint32": "uint", "uint64": "ulong", "size": "ulong", "ptrdiff": "long",
}  # fmt: skip


class TableError(Exception):
    pass


@dataclass
class Function:
    """One C function."""

    prototype: str  # with the name and without the semicolon
    name: str
    body: str | None  # an expression


@dataclass
class Call:
    family: str
    words: list[str]
    prototype: str
    body: str | None
    operations: list[str]
    members: list[str]  # names of types, or of sizes
    line: int

    @property
    def typed(self) -> bool:
        return "TYPENAME" in self.prototype

    def functions(self, context: bool = False) -> list[Function]:
        return [self._function(op, member, context) for op, member in product(self.operations, self.members)]

    def _function(self, op: str, member: str, context: bool) -> Function:
        def fill(text: str) -> str:
            text = re.sub(r"OP_", f"{op}_", text) if op in ("and", "or", "xor") else text
            text = text.replace("TYPENAME", member).replace(
                "BYTES", "1" if member == "mem" else str(int(member) // 8) if member.isdigit() else ""
            )
            text = re.sub(r"\bTYPE\b", TYPES.get(member, ""), text)
            return text.replace("SIZE", member).replace("OP", op)

        prototype = fill(self.prototype)
        if context:
            prototype = prototype.replace("shmem_", "shmem_ctx_", 1).replace("(", "(shmem_ctx_t ctx, ", 1)
        # In some comments SIZE is also the end of a constant's name, but this never happens in a prototype. A
        # name is the word before the first bracket.
        name = re.search(r"(\w+)\(", prototype).group(1)
        body = self.body and re.sub(
            r"\bCTX\b", "context_of(ctx)" if context else "default_context()", fill(self.body)
        )
        return Function(prototype, name, body)

    def generic_name(self, op: str) -> str:
        return re.search(r"(\w+)\(", self.prototype).group(1).replace("TYPENAME_", "").replace("OP", op)


@dataclass
class Section:
    title: str
    text: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)


def read(path: Path) -> list[Section]:
    families: dict[str, list[str]] = {"one": [""]}
    sections: list[Section] = []
    call: Call | None = None
    for number, raw in enumerate(path.read_text().splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if match := re.fullmatch(r"(types|sizes)\s+(\w+)\s+(.*)", line):
            families[match[2]] = match[3].split()
            if match[1] == "types" and (
                unknown := [name for name in families[match[2]] if name not in TYPES]
            ):
                raise TableError(f"line {number}: no type is called {unknown[0]}")
        elif match := re.fullmatch(r"\[(.*)\]", line):
            sections.append(Section(match[1]))
            call = None
        elif not sections:
            raise TableError(f"line {number}: a call needs a section")
        elif raw[0] == " ":
            if call is None:
                sections[-1].text.append(line)
            elif call.body is not None:
                raise TableError(f"line {number}: a call has one body")
            else:
                call.body = line
        elif match := re.fullmatch(r"(\w+)((?: [\w=,]+)*): (\w.*\))", line):
            words = match[2].split()
            operations = [word[4:].split(",") for word in words if word.startswith("ops=")]
            if match[1] not in families:
                raise TableError(f"line {number}: no family is called {match[1]}")
            if unknown := [
                word
                for word in words
                if word not in ("ctx", "generic", "deprecated", "noreturn") and not word.startswith("ops=")
            ]:
                raise TableError(f"line {number}: unknown word {unknown[0]}")
            call = Call(
                match[1],
                words,
                match[3],
                None,
                operations[0] if operations else [""],
                families[match[1]],
                number,
            )
            sections[-1].calls.append(call)
        else:
            raise TableError(f"line {number}: cannot be read")
    names = [
        function.name
        for section in sections
        for c in section.calls
        for ctx in ((False, True) if "ctx" in c.words else (False,))
        for function in c.functions(ctx)
    ]
    if twice := {name for name in names if names.count(name) > 1}:
        raise TableError(f"declared twice: {', '.join(sorted(twice))}")
    return sections
