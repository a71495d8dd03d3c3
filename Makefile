# Fresh machine, two commands: `make demo` and `make test`. Each sets up what it needs first (scripts/setup.sh).
# `make test` runs every kind of check, `make test-long` the rest: more ranks of the same. `make one TEST=NAME` runs the tests whose name matches.
.PHONY: all setup configured build demo test test-long one bench format check-format tidy test-asan test-tsan test-mpi-next fuzz clang aarch64 clean
JOBS ?= $(shell nproc)

all: build

setup:
	@scripts/setup.sh

configured: setup
	@[ -f build/build.ninja ] || cmake --preset release -DCMAKE_MESSAGE_LOG_LEVEL=WARNING

build: configured
	@cmake --build build -j $(JOBS) -- --quiet

# Builds only what it runs, and where nothing is built yet, in the way that is quickest from nothing.
demo: setup
	@if [ -x build/bin/fft3d ]; then \
	    cmake --build build -j $(JOBS) --target demo -- --quiet && scripts/demo.sh; \
	else \
	    { [ -f build-demo/build.ninja ] || cmake --preset demo -DCMAKE_MESSAGE_LOG_LEVEL=WARNING; } && \
	    cmake --build build-demo -j $(JOBS) --target demo -- --quiet && BUILD=build-demo scripts/demo.sh; \
	fi

test:
	@begin=$$(date +%s) && scripts/setup.sh tests && $(MAKE) --no-print-directory build && BUILD_SECONDS=$$(($$(date +%s) - begin)) scripts/test.sh build

test-long: build
	@scripts/test.sh build long
	@scripts/test-versions.sh

# Builds all, since a test may start several programs.
one: build
	@scripts/test.sh build -R '$(TEST)'

test-asan test-tsan: test-%: setup
	@[ -f build-$*/build.ninja ] || cmake --preset $* -DCMAKE_MESSAGE_LOG_LEVEL=WARNING
	@cmake --build build-$* -j $(JOBS) -- --quiet
	@scripts/test.sh build-$*

# The front end with Open MPI 5, MPICH 5 and the MPI ABI, from the Python package index (docs/mpi.md).
test-mpi-next: setup
	@scripts/test-mpi-next.sh

# Older versions beside this one: those of REFS, or the last tag's (docs/install.md).
.PHONY: test-versions
test-versions: build
	@scripts/test-versions.sh $(REFS)

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

bench: build
	@scripts/bench.sh

format: setup
	@git ls-files '*.h' '*.c' '*.cpp' '*.hpp' | xargs clang-format-16 -i
	@.venv/bin/ruff format -q .

# Form of the sources, and types of the Python command. Part of `make test`.
.PHONY: lint
lint: setup
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
