"""The programs of a soak. Each verifies its results, or prints results that are compared with those of a run
without offload."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from offpath.artifacts import Artifacts
from offpath.codes import Code
from offpath.errors import OffpathError
from offpath.lab import mpi
from offpath.lab.mpi import Engine

_SEED = "SEED"  # an argument that stands for the seed of the run


@dataclass(frozen=True)
class SoakProgram:
    name: str
    what: str
    binary: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    shmem: bool = False  # it is linked to offpath's OpenSHMEM, and does not run without a device
    # It verifies its results itself and ends with an error if they are wrong. What it prints is not compared.
    verifies: bool = False
    mpich: bool = False  # it is built with MPICH
    ignored: str = "(?!)"  # a regular expression: what differs from run to run in a line that it prints

    @property
    def library(self) -> str:
        if self.shmem:
            return "shmem"
        return "mpich" if self.mpich else "openmpi"

    @property
    def has_host_run(self) -> bool:
        """Whether it runs without a device. MPICH itself hangs in about one run of eight then."""
        return not (self.shmem or self.mpich)

    def engine(self, offload: bool) -> Engine:
        if not offload:
            return mpi.HOST
        environment = dict(self.environment)
        if self.shmem:
            # A PE must not start a daemon of its own in place of one that the soak has killed.
            environment["OFFPATH_AUTOSTART"] = "0"
        return replace(mpi.OFFPATH, mca=_MCA, environment=environment, front_end=not self.shmem)

    def command(self, artifacts: Artifacts, seed: int) -> list[str]:
        return [
            str(artifacts.program(self.binary)),
            *(str(seed) if word == _SEED else word for word in self.arguments),
        ]


# Open MPI 4.1's other topology component hangs now and then when distributed graphs follow each other.
_MCA = {"topo": "basic"}
_ALL = {"OFFPATH_MIN_BYTES": "0", "OFFPATH_OPS": "all,blocking"}
_JSON = ("--json", "-")


def _with_mpich(program: SoakProgram) -> SoakProgram:
    """The test program of MPI, built with MPICH."""
    binary = program.binary.replace("mpi_", "mpich_", 1)
    return replace(
        program, name=f"{program.name}-mpich", what=f"{program.what}, MPICH", binary=binary, mpich=True
    )


_OF_OPEN_MPI = {
    program.name: program
    for program in (
        SoakProgram(
            "collectives",
            "collectives of all kinds and datatypes",
            "mpi_collectives_test",
            (),
            _ALL,
            verifies=True,
        ),
        SoakProgram("reductions", "reductions of all types", "mpi_reductions_test", (), _ALL, verifies=True),
        SoakProgram(
            "messages",
            "random messages",
            "mpi_p2p_random_test",
            (_SEED, "150"),
            {"OFFPATH_MIN_BYTES": "4096", "OFFPATH_P2P": "all", "OFFPATH_P2P_WAITED": "device"},
            verifies=True,
        ),
        SoakProgram(
            "windows",
            "random one-sided operations",
            "mpi_rma_random_test",
            (_SEED, "150", "host"),  # without calls that Open MPI's own windows get wrong
            {"OFFPATH_RMA": "all"},
            verifies=True,
        ),
        SoakProgram(
            "shmem",
            "OpenSHMEM's puts, gets, atomics, signals and waits",
            "shmem_attach_again_test",
            ("none",),
            shmem=True,
            verifies=True,
        ),
        SoakProgram(
            "shmem-collectives",
            "OpenSHMEM's collectives",
            "shmem_collectives_test",
            shmem=True,
            verifies=True,
        ),
        SoakProgram("fft3d", "3-D Fourier transforms", "fft3d", ("--n", "64", "--iterations", "30", *_JSON)),
        SoakProgram(
            "bspmm",
            "block-sparse matrix products over MPI windows",
            "bspmm",
            ("--variant", "mpi-rma", "--mesh", "16", "--tile", "64", "--iterations", "6", *_JSON),
            {"OFFPATH_RMA": "all"},
            verifies=True,
        ),
        SoakProgram(
            "bspmm-shmem",
            "block-sparse matrix products over OpenSHMEM",
            "bspmm",
            ("--variant", "offload", "--mesh", "16", "--tile", "64", "--iterations", "8", *_JSON),
            shmem=True,
            verifies=True,
        ),
        SoakProgram(
            "minimd",
            "molecular dynamics",
            "minimd",
            ("-s", "16", "-n", "500"),
            {"OFFPATH_MIN_BYTES": "0"},
            ignored=r"\s\d+\.\d+$|^.*PERF_SUMMARY.*$",  # times
        ),
        SoakProgram(
            "halo",
            "a stencil",
            "halo",
            ("--variant", "nonblocking", "--size", "512", "--steps", "2000", *_JSON),
            {"OFFPATH_MIN_BYTES": "0"},
        ),
    )
}

_OF_MPICH = [_with_mpich(_OF_OPEN_MPI[name]) for name in ("collectives", "reductions", "messages", "windows")]
PROGRAMS = _OF_OPEN_MPI | {program.name: program for program in _OF_MPICH}


def choose(names: list[str] | None, artifacts: Artifacts) -> list[SoakProgram]:
    """The programs to run: those named, else all that are built here."""
    if names is not None:
        for name in names:
            if name not in PROGRAMS:
                raise OffpathError(
                    Code.OPTION, f"program {name!r} is not known", "use some of " + ", ".join(PROGRAMS)
                )
            artifacts.program(PROGRAMS[name].binary)
        return [PROGRAMS[name] for name in names]
    found = [program for program in PROGRAMS.values() if _is_built(artifacts.root, program)]
    if not found:
        raise OffpathError(Code.NOT_INSTALLED, "none of the programs of a soak is built", "run `make build`")
    return found


def _is_built(root: Path, program: SoakProgram) -> bool:
    return (root / "bin" / program.binary).exists()
