"""The recipe for Spack and the container file agree with the build. Spack itself and a container run time are
not needed: the recipe runs with a stand-in for Spack's directives."""

import re
import subprocess
import sys
import types
from contextlib import contextmanager
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
RECIPE = SOURCE / "packaging/spack/packages/offpath/package.py"
CONTAINER = SOURCE / "packaging/Containerfile"
# How Spack calls what CMake looks for.
SPACK_NAMES = {
    "fmt": "fmt", "spdlog": "spdlog", "CLI11": "cli11", "nlohmann_json": "nlohmann-json",
    "GTest": "googletest",
    "MPI": "openmpi", "PMIX": "pmix", "SODIUM": "libsodium", "HWY": "highway", "FFI": "libffi",
    "benchmark": "benchmark", "FFTW": "fftw", "OPENBLAS": "openblas", "PkgConfig": "pkgconfig",
    "Python3": "python", "Threads": None,
}  # fmt: skip


class Directives(types.ModuleType):
    """Stands for spack.package: the directives that the recipe uses. `cmake` stands for the module of Spack's
    packages that builds with CMake."""

    def __init__(self):
        super().__init__("spack.package")
        self.said: dict[str, list] = {}
        for name in ("license", "version", "variant", "depends_on", "conflicts"):
            setattr(self, name, self.directive(name))
        self.cmake = types.ModuleType("spack_repo.builtin.build_systems.cmake")
        self.cmake.generator = self.directive("generator")
        self.cmake.CMakePackage = type(
            "CMakePackage",
            (),
            {
                "run_tests": False,
                "define": lambda _, name, value: (name, value),
                "define_from_variant": lambda _, name, variant: (name, variant),
            },
        )

    def directive(self, name):
        self.said[name] = []
        return lambda *words, **options: self.said[name].append((words, options))

    @contextmanager
    def when(self, _condition):
        yield


def recipe(monkeypatch):
    directives = Directives()
    monkeypatch.setitem(sys.modules, "spack", types.ModuleType("spack"))
    monkeypatch.setitem(sys.modules, "spack.package", directives)
    for name in ("spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, directives.cmake.__name__, directives.cmake)
    names: dict = {"__file__": str(RECIPE)}
    exec(compile(RECIPE.read_text(), RECIPE, "exec"), names)
    return names["Offpath"], directives.said


def cmake() -> str:
    paths = [SOURCE / "CMakeLists.txt", *sorted((SOURCE / "cmake").glob("*.cmake"))]
    return "\n".join(path.read_text() for path in paths)


def test_the_recipe_depends_on_what_cmake_looks_for(monkeypatch):
    _, said = recipe(monkeypatch)
    depended = {re.match(r"[\w-]+", words[0])[0] for words, _ in said["depends_on"]}
    text = cmake()
    wanted = set(re.findall(r"^\s*find_package\((\w+)(?=.*REQUIRED)", text, re.MULTILINE))
    wanted |= set(re.findall(r"^\s*pkg_check_modules\((\w+) REQUIRED", text, re.MULTILINE))
    assert wanted <= SPACK_NAMES.keys()
    assert {SPACK_NAMES[name] for name in wanted} - {None} <= depended
    (needed,) = re.findall(r"cmake_minimum_required\(VERSION ([\d.]+)\)", text)
    assert f"cmake@{needed}:" in {words[0] for words, _ in said["depends_on"]}


def test_the_recipe_builds_this_tree_with_settings_that_cmake_knows(monkeypatch):
    package, said = recipe(monkeypatch)
    assert package.git == SOURCE.as_uri() and said["version"]

    class Prefix:
        prefix = "/opt/ucx"

    one = package()
    one.spec = {"ucx": Prefix}
    settings = dict(one.cmake_args())
    text = cmake()
    for name in settings:
        assert re.search(rf"(?:option|set|find_library)\({name}\b", text), name
    assert settings["OFFPATH_UCX_ROOT"] == "/opt/ucx" and settings["OFFPATH_BUILD_TESTS"] is False


def test_the_container_file_installs_what_make_deb_makes():
    text = CONTAINER.read_text()
    stages = re.split(r"^FROM ", text, flags=re.MULTILINE)[1:]
    assert re.search(r"^ARG BASE=debian:12-slim\nFROM ", text, re.MULTILINE)
    assert len(stages) == 2 and all(stage.startswith("$BASE") for stage in stages)
    for command in re.findall(r"^RUN (.*)$", text, re.MULTILINE):
        assert subprocess.run(["sh", "-n", "-c", command]).returncode == 0, command
    made = (SOURCE / "packaging/debian/make.sh").read_text()
    assert "&& make deb wheel\n" in stages[0] and "build/packages" in (SOURCE / "Makefile").read_text()
    for package in re.findall(r"/packages/(\w+)_", stages[1]):
        assert re.search(rf"^(?:pack|daemon\b.*|    pack) ?{package}\b", made, re.MULTILINE), package
    kept_out = (SOURCE / ".dockerignore").read_text().split()
    assert {"build*", ".venv*", ".git"} <= set(kept_out)
