"""Spack's recipe for offpath's libraries, daemon, benchmarks and applications. It builds the source tree that
this file is part of (docs/install.md). The offpath command is a wheel of its own."""

from pathlib import Path

from spack.package import conflicts, depends_on, license, variant, version, when
from spack_repo.builtin.build_systems.cmake import CMakePackage, generator


class Offpath(CMakePackage):
    """Takes the communication of MPI and OpenSHMEM programs off the host's cores, onto a device: the cores of
    a SmartNIC (DPU), or a spare core of the node."""

    git = Path(__file__).resolve().parents[4].as_uri()

    license("Apache-2.0")

    version("main", branch="main")

    variant("device", default=False, description="Build only what runs on a device, without MPI")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3.9:", type="build")
    depends_on("googletest", type="build")

    depends_on("fmt@9:")
    depends_on("spdlog@1.10:")
    depends_on("cli11")
    depends_on("nlohmann-json@3.11:")
    depends_on("libsodium")
    depends_on("highway")
    depends_on("libffi")
    depends_on("pmix")
    depends_on("ucx@1.13:")
    with when("~device"):
        depends_on("openmpi@4.1:")
        depends_on("benchmark", type="build")
        depends_on("fftw@3")
        depends_on("openblas")

    conflicts("%gcc@:11", msg="C++20 as of GCC 12 is needed")
    conflicts("%clang@:15", msg="C++20 as of clang 16 is needed")

    generator("ninja")

    def cmake_args(self):
        return [
            self.define("OFFPATH_UCX_ROOT", self.spec["ucx"].prefix),
            self.define("OFFPATH_BUNDLE_UCX", False),
            self.define_from_variant("OFFPATH_DEVICE_ONLY", "device"),
            self.define("OFFPATH_BUILD_TESTS", self.run_tests),
            # CMake would find the system's. Spack has one MPI in a tree of dependencies.
            self.define("OFFPATH_MPICH_LIBRARY", "IGNORE"),
        ]
