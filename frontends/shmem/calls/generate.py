"""Generates shmem.h, pshmem.h and the C functions from calls.txt.

usage: generate.py CALLS.TXT SHMEM.H.IN SHMEM.H PSHMEM.H CALLS.CPP...

The functions are distributed over the CALLS.CPP in turn. Each is named pshmem_... and has shmem_... as a
weak name, so that a profiler can define its own.
"""

import sys
from pathlib import Path

import table
from table import Call, Function, Section

WIDTH = 110

SOURCE_HEAD = """\
// Generated from frontends/shmem/calls/calls.txt by generate.py.
#include "calls/bodies.h"

using namespace offpath::shmem;

"""
PROFILING_HEAD = """\
/* The calls of OpenSHMEM under the names that a profiler calls: shmem_x is a weak name of pshmem_x. */
#ifndef OFFPATH_PSHMEM_H
#define OFFPATH_PSHMEM_H

#include <shmem.h>

#ifdef __cplusplus
extern "C" {
#endif

"""


def folded(text: str) -> str:
    """Breaks the text at commas and indents the following lines by four."""
    lines, rest = [], text
    while len(rest) > WIDTH:
        cut = rest.rfind(", ", 0, WIDTH) + 1
        if cut <= 4:
            break
        lines.append(rest[:cut])
        rest = "    " + rest[cut + 1 :]
    return "\n".join([*lines, rest])


def forms(call: Call) -> list[list[Function]]:
    return [call.functions(context) for context in ((False, True) if "ctx" in call.words else (False,))]


def in_complex(function: Function) -> bool:
    return "_Complex" in function.prototype


def declarations(section: Section, rename) -> str:
    text = [f"/* {section.title}." + "".join(f"\n   {line}" for line in section.text) + " */"]
    for call in section.calls:
        for functions in forms(call):
            functions = [function for function in functions if rename(function.name)]
            text += [
                declaration(function, call, rename) for function in functions if not in_complex(function)
            ]
            complex_ones = [
                declaration(function, call, rename) for function in functions if in_complex(function)
            ]
            if complex_ones:
                text += ["#ifdef OFFPATH_SHMEM_COMPLEX", *complex_ones, "#endif"]
    return "\n".join(text) + "\n"


def declaration(function: Function, call: Call, rename) -> str:
    words = "OFFPATH_SHMEM_NORETURN " if "noreturn" in call.words else ""
    return folded(words + function.prototype.replace(function.name, rename(function.name), 1) + ";")


def generic_types(call: Call) -> list[str]:
    names: list[str] = []
    for member in call.members:
        name = table.SAME.get(member, member)
        if name not in [table.SAME.get(other, other) for other in names]:
            names.append(member)
    # The plain name of a type replaces its other names if the family has it.
    return [table.SAME[name] if table.SAME.get(name) in call.members else name for name in names]


def selections(sections: list[Section]) -> str:
    """Returns one list of associations for each family that a generic call names."""
    text = ""
    for family, call in {
        call.family: call for section in sections for call in section.calls if "generic" in call.words
    }.items():
        rows = []
        for name in generic_types(call):
            type_ = table.TYPES[name]
            row = ", ".join(
                f"{qualifier}{type_} *: prefix##{name}##suffix" for qualifier in ("", "const ", "volatile ")
            )
            rows.append(f"    {row}")
        text += f"#define OFFPATH_SHMEM_TYPES_{family}(prefix, suffix) \\\n" + ", \\\n".join(rows) + "\n"
    return text


def generics(sections: list[Section]) -> str:
    lines = []
    for section in sections:
        for call in section.calls:
            if "generic" not in call.words:
                continue
            for op in call.operations:
                name = call.generic_name(op)
                suffix = name.removeprefix("shmem")
                if "ctx" in call.words:
                    kind = "CTX"
                elif "(shmem_team_t team" in call.prototype:
                    kind = "TEAM"
                else:
                    kind = "PLAIN"
                lines.append(
                    f"#define {name}(...) OFFPATH_SHMEM_{kind}_(OFFPATH_SHMEM_TYPES_{call.family}, {suffix},"
                    " __VA_ARGS__)(__VA_ARGS__)"
                )
    return "\n".join(lines) + "\n"


def definition(function: Function) -> str:
    prototype, body = function.prototype, function.body
    result = "" if prototype.startswith("void ") and not prototype.startswith("void *") else "return "
    if not profiled(function.name):
        return f"OFFPATH_SHMEM_EXPORT {prototype} {{\n    {result}{body};\n}}\n"
    inner = f"p{function.name}"
    return (
        f"OFFPATH_SHMEM_EXPORT {prototype.replace(function.name, inner, 1)} {{\n    {result}{body};\n}}\n"
        f'OFFPATH_SHMEM_EXPORT __attribute__((weak, alias("{inner}"))) decltype({inner}) {function.name};\n'
    )


def profiled(name: str) -> bool:
    """Names that do not begin with shmem_ are aliases of calls that do."""
    return name.startswith("shmem_")


def sources(sections: list[Section], count: int) -> list[str]:
    texts = [SOURCE_HEAD] * count
    for number, function in enumerate(
        function
        for section in sections
        for call in section.calls
        for functions in forms(call)
        for function in functions
        if function.body
    ):
        texts[number % count] += definition(function)
    return texts


def main() -> None:
    calls_path, template, header, profiling, *cpp_paths = (Path(argument) for argument in sys.argv[1:])
    try:
        sections = table.read(calls_path)
    except table.TableError as error:
        sys.exit(f"{calls_path}: {error}")
    declared = "\n".join(declarations(section, lambda name: name) for section in sections)
    shifted = "\n".join(
        declarations(section, lambda name: f"p{name}" if profiled(name) else None) for section in sections
    )
    text = template.read_text()
    for mark, content in (
        ("@DECLARATIONS@", declared),
        ("@SELECTIONS@", selections(sections)),
        ("@GENERICS@", generics(sections)),
    ):
        text = text.replace(f"{mark}\n", content)
    header.write_text(text)
    profiling.write_text(PROFILING_HEAD + shifted + "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n")
    for path, content in zip(cpp_paths, sources(sections, len(cpp_paths)), strict=True):
        path.write_text(content)


if __name__ == "__main__":
    main()
