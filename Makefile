# Fresh machine, two commands: `make demo` and `make test`. Each sets up what it needs first (scripts/setup.sh).
.PHONY: all setup build demo test bench format check-format tidy test-asan test-tsan test-mpi-next fuzz clang aarch64 clean
JOBS ?= $(shell nproc)

all: build

setup:
	@scripts/setup.sh

build: setup
	@[ -f build/build.ninja ] || cmake --preset release -DCMAKE_MESSAGE_LOG_LEVEL=WARNING
	@cmake --build build -j $(JOBS) -- --quiet

demo: build
	@scripts/demo.sh

test: build
	@scripts/test.sh build

test-asan test-tsan: test-%: setup
	@[ -f build-$*/build.ninja ] || cmake --preset $* -DCMAKE_MESSAGE_LOG_LEVEL=WARNING
	@cmake --build build-$* -j $(JOBS) -- --quiet
	@scripts/test.sh build-$*

# The front end with Open MPI 5, MPICH 5 and the MPI ABI, from the Python package index (docs/mpi.md).
test-mpi-next: setup
	@scripts/test-mpi-next.sh

clang: setup
	@[ -f build-clang/build.ninja ] || cmake --preset clang -DCMAKE_MESSAGE_LOG_LEVEL=WARNING
	@cmake --build build-clang -j $(JOBS) -- --quiet

# offpathd, the libraries and the device programs for aarch64, run under qemu by build-aarch64/bin/run (docs/aarch64.md).
aarch64: setup
	@scripts/setup-aarch64.sh
	@[ -f build-aarch64/build.ninja ] || cmake --preset aarch64 -DCMAKE_MESSAGE_LOG_LEVEL=WARNING
	@cmake --build build-aarch64 -j $(JOBS) -- --quiet

fuzz: setup
	@scripts/fuzz.sh

bench: build
	@scripts/bench.sh

format: setup
	@git ls-files '*.h' '*.c' '*.cpp' '*.hpp' | xargs clang-format-16 -i
	@.venv/bin/ruff format -q .

# Form of the sources, and types of the Python command. Part of `make test`.
.PHONY: lint
lint: setup
	@scripts/lint.sh

check-format:
	@git ls-files '*.h' '*.c' '*.cpp' '*.hpp' | xargs clang-format-16 --dry-run -Werror

tidy: build
	@git ls-files 'src/*.cpp' 'frontends/*.cpp' | xargs -P $(JOBS) -n 1 clang-tidy-16 -p build --quiet

clean:
	@rm -rf build build-*
