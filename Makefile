# Fresh machine, two commands: `make demo` and `make test`. Each sets up what it needs first (scripts/setup.sh).
# `make test` tests the product. `make test-all` runs the other kinds of checks: other MPIs, verbs in a guest, aarch64, sanitizers, fuzzers, packages, the site.
# `make test-long` runs what takes hours. `make one TEST=NAME` runs the tests whose name matches.
.PHONY: all setup configured build demo test test-all test-long one bench format check-format tidy test-asan test-tsan test-mpi-next fuzz clang aarch64 clean
SUITE = cd tests && ../.venv/bin/python -m suite
JOBS ?= $(shell nproc)

all: build

setup:
	@scripts/setup.sh

configured: setup
	@[ -f build/build.ninja ] || cmake --preset release -DCMAKE_MESSAGE_LOG_LEVEL=WARNING

build: configured
	@JOBS=$(JOBS) scripts/build.py build

# Builds only what it runs.
demo: configured
	@JOBS=$(JOBS) scripts/build.py build demo
	@scripts/demo.sh

test:
	@scripts/setup.sh tests
	@$(MAKE) --no-print-directory configured
	@JOBS=$(JOBS) scripts/build.py build one-mpi
	@$(SUITE) build

# PARTS="rest site" runs only these of its parts (scripts/test-all.sh).
test-all:
	@scripts/setup.sh tests
	@$(MAKE) --no-print-directory build
	@scripts/test-all.sh $(PARTS)

test-long: build
	@scripts/setup.sh tests
	@$(SUITE) build --set long
	@scripts/test-versions.sh
	@scripts/test-rdma.sh conformance || [ $$? -eq 77 ]
	@if [ "$$(id -u)" -eq 0 ]; then scripts/clean-root.sh; else echo "clean-root: skipped: only root can make a root"; fi

# Builds all, since a test may start several programs. TIMES=N runs each test N times.
TIMES ?= 1
one: build
	@scripts/setup.sh tests
	@$(SUITE) build -R '$(TEST)' --times $(TIMES)

test-asan test-tsan: test-%:
	@scripts/setup.sh tests
	@[ -f build-$*/build.ninja ] || cmake --preset $* -DCMAKE_MESSAGE_LOG_LEVEL=WARNING
	@JOBS=$(JOBS) scripts/build.py build-$*
	@$(SUITE) build-$*

# The front end with Open MPI 5, MPICH 5 and the MPI ABI, from the Python package index (docs/mpi.md).
test-mpi-next: setup
	@scripts/test-mpi-next.sh

# Older versions beside this one: those of REFS, or the last tag's (docs/install.md).
.PHONY: test-versions
test-versions: build
	@scripts/test-versions.sh $(REFS)

clang: setup
	@[ -f build-clang/build.ninja ] || cmake --preset clang -DCMAKE_MESSAGE_LOG_LEVEL=WARNING
	@JOBS=$(JOBS) scripts/build.py build-clang

# offpathd, the libraries and the device programs for aarch64, run under qemu by build-aarch64/bin/run (docs/aarch64.md).
aarch64: setup
	@scripts/setup-aarch64.sh
	@[ -f build-aarch64/build.ninja ] || cmake --preset aarch64 -DCMAKE_MESSAGE_LOG_LEVEL=WARNING
	@JOBS=$(JOBS) scripts/build.py build-aarch64

# Which lines the tests reach, by room: docs/coverage.md.
.PHONY: coverage
coverage:
	@scripts/setup.sh coverage
	@scripts/coverage.sh

fuzz: setup
	@scripts/fuzz.sh

# Packages of this build in build/packages: for Debian, also of the daemon for arm64 if `make aarch64` was run before, and
# the wheel of the offpath command.
.PHONY: deb wheel
deb: build
	@packaging/debian/make.sh build build/packages $(if $(wildcard build-aarch64/bin/offpathd),build-aarch64)

wheel: setup
	@packaging/wheel.sh .venv/bin/python build/packages

# Adds what the latest run of the tests found to docs/compatibility.md.
.PHONY: compatibility
compatibility:
	@scripts/compatibility.py record build

# The documentation as a site with search, in build/site.
.PHONY: docs
docs: setup
	@scripts/docs.sh

# Checks the links of the site, and opens two of its pages in a browser.
.PHONY: docs-check
docs-check: docs
	@scripts/setup.sh tests
	@PYTHONPATH=tests/python .venv/bin/python scripts/check_site.py build/site

bench: build
	@scripts/bench.sh

format:
	@scripts/setup.sh tests
	@git ls-files '*.h' '*.c' '*.cpp' '*.hpp' | xargs clang-format-16 -i
	@.venv/bin/ruff format -q .

# Form of the sources, and types of the Python command. Part of `make test`.
.PHONY: lint
lint:
	@scripts/setup.sh tests
	@scripts/lint.sh

# `make demo` and `make test` of the last commit, in a minimal Debian, as root and as an ordinary user. Needs root.
.PHONY: clean-root
clean-root:
	@scripts/clean-root.sh

check-format:
	@git ls-files '*.h' '*.c' '*.cpp' '*.hpp' | xargs clang-format-16 --dry-run -Werror

tidy: build
	@git ls-files 'src/*.cpp' 'frontends/*.cpp' | xargs -P $(JOBS) -n 1 clang-tidy-16 -p build --quiet

clean:
	@rm -rf build build-*
