# Everything a developer types. Each target first sets up what is missing, so `make demo` and `make test` are enough.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:

# One profile for all that is built, so that nothing is compiled twice; `make PROFILE=release build` for speed.
PROFILE ?= dev
export PROFILE
export MUTANTS
export CARGO_TARGET_DIR ?= $(CURDIR)/target
VENV := $(CURDIR)/.venv
PYTHON := $(VENV)/bin/python
export PATH := $(VENV)/bin:$(PATH)

# All crates with tests in Rust. With the libraries of the Python extension, the crates below those would be compiled anew for the
# package.
export CRATES := --workspace --exclude titin-python

# Test runners at once: one more than there are cores, since tests also wait.
JOBS ?= $(shell expr $$(nproc) + 1)

help:  ## this list
	@sed -n 's/^\([a-z0-9]*\):.*## \(.*\)/  make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 16

setup: $(VENV)/.ready  ## what building needs: Debian packages, a Python environment in .venv

build: setup  ## the package, in .venv
	$(PYTHON) tools/wheel.py --profile $(PROFILE) --install

wheel: setup  ## the wheels for other machines, with x86-64 and with aarch64 processors, in dist/
	for machine in x86_64 aarch64; do \
		$(PYTHON) tools/wheel.py --profile release --portable --target $$machine-unknown-linux-gnu; \
	done

# Long, and for root: chroots with an empty Debian in them, and a whole build for Debian.
packages: wheel  ## the wheel and the Debian packages, tried in empty systems, in dist/
	tools/packages.sh debootstrap:debootstrap lintian:lintian dh:debhelper dh_python3:dh-python chrpath:chrpath
	packaging/try-wheel.sh
	packaging/try-module.sh
	packaging/build-debian.sh
	packaging/try-debian.sh

demo: build  ## the main example: a lattice Boltzmann cavity, whole and in coupled pieces, against a reference
	examples/cavity/run.sh

test: test-rust test-aarch64 test-python  ## every test of every language

test-rust: setup test-packages
	cargo test $(CRATES) --locked --profile $(PROFILE)

test-python: build test-packages aarch64
	$(PYTHON) -m pytest tests -n $(JOBS) -rs

# What runs of both x86-64 and aarch64 programs need, in build/aarch64. Where packages are missing, the tests that need
# them are left out.
aarch64: build  ## libtitin for aarch64, an emulator and compilers, for tests on an x86-64 machine
	$(PYTHON) tools/aarch64.py

test-aarch64: aarch64
	$(PYTHON) tools/aarch64.py --tests

# What tests start beside titin, and nothing else needs: MPI, coarrays, Global Arrays and what they are linked with, a
# compiler that has std::mdspan, Slurm, ssh, tools, what Debian packages and module files are tested with.
LIB := /usr/lib/$(shell uname -m)-linux-gnu
test-packages: $(VENV)/.ready-docs $(VENV)/intelmpi/.ready $(VENV)/muscle3-0.10/.ready $(VENV)/muscle3-0.11/.ready
	tools/packages.sh git:git mpirun.openmpi:openmpi-bin mpicc.openmpi:libopenmpi-dev mpiexec.mpich:mpich mpicc.mpich:libmpich-dev \
		caf.openmpi:libcoarrays-openmpi-dev caf.mpich:libcoarrays-mpich-dev ga-config:libglobalarrays-dev \
		$(LIB)/libarmci.a:libarmci-mpi-dev $(LIB)/libscalapack-openmpi.so:libscalapack-mpi-dev \
		$(LIB)/libscalapack-mpich.so:libscalapack-mpich-dev $(LIB)/liblapack.so:liblapack-dev $(LIB)/libfftw3.so:libfftw3-dev \
		ruby:ruby zsh:zsh fish:fish man:man-db \
		clang++-19:clang-19 /usr/lib/llvm-19/lib/libc++.so:libc++-19-dev \
		gdb:gdb slurmctld:slurm-wlm munged:munge dropbear:dropbear-bin ssh:openssh-client openssl:openssl ip:iproute2 chromium:chromium script:bsdutils pgrep:procps unshare:util-linux \
		/usr/share/modules/init/bash:environment-modules chrpath:chrpath dpkg-parsechangelog:dpkg-dev

$(VENV)/intelmpi/.ready: requirements-test.txt $(VENV)/.ready
	mkdir -p $(@D)
	$(PYTHON) -m pip install -q --disable-pip-version-check --no-deps --ignore-installed --prefix $(@D) -r $<
	touch $@

# MUSCLE3 itself, which tests run beside titin, each release in a folder of its own: its libmuscle has the name of ours.
$(VENV)/muscle3-%/.ready: $(VENV)/.ready
	rm -rf $(@D)
	$(PYTHON) -m pip install -q --disable-pip-version-check --target $(@D) muscle3==$*.0
	touch $@

check: check-rust check-orders check-python check-tree  ## format, lints, types, licences

check-rust: setup
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked --profile $(PROFILE) -- -D warnings

# The pieces that several threads work on at once, in every order that the memory model allows.
check-orders: setup
	RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=$(CARGO_TARGET_DIR)/loom \
		cargo test --locked --profile loom -p titin-transport --lib loom

# mypy reads what tools/docs.py imports.
check-python: setup $(VENV)/.ready-docs
	ruff format --check .
	ruff check .
	mypy

check-tree: setup
	$(PYTHON) tools/licences.py
	$(PYTHON) tools/words.py

docs: $(VENV)/.ready-docs  ## the documentation as a site, in build/site
	$(PYTHON) tools/docs.py

bench: setup  ## the benchmarks, each beside its rival
	$(MAKE) PROFILE=release build
	$(PYTHON) -m benchmarks $(if $(QUICK),--quick)

papers: setup  ## the experiments of the papers, repeated, in docs/papers.md
	$(MAKE) PROFILE=release build
	$(PYTHON) -m benchmarks.papers

fuzz: setup  ## the decoders against random bytes, 60 seconds each
	tools/fuzz.sh

mutants: build  ## small changes of the code that no test notices, in build/mutants; `make mutants MUTANTS=0/16` for a sample
	tools/mutants.sh

# One test at a time: they measure times and memory. A line that loses packets is emulated by the program that TITIN_WANEM names.
soak: build test-packages  ## an hour of outages, full lines and killed processes, for runs over sites
	TITIN_SCHEDULES=1000000 cargo test --locked --profile $(PROFILE) -p titin-wire --lib random_schedules
	$(PYTHON) -m pytest tests/soak -s -rs
	TITIN_SOAK_STARTS=20 $(PYTHON) -m pytest tests/sites/test_slurm.py -k fifty

clean:  ## removes what was built
	rm -rf $(CARGO_TARGET_DIR) $(VENV) build dist
	find examples miniapps -depth -name build -type d -exec rm -rf {} +
	$(MAKE) -s clean-stage

clean-stage:
	rm -rf bindings/python/data bindings/python/titin/{include,lib,fortran,muscle3,muscle2}
	rm -f bindings/python/{LICENSE,THIRD-PARTY-LICENSES.txt,titin.cdx.json} compat/muscle3/python/LICENSE

$(VENV)/.ready: tools/setup.sh requirements-build.txt requirements-dev.txt
	tools/setup.sh $(VENV)
	touch $@

# Needs no compiler, so that those who write can build the site without one.
$(VENV)/.ready-docs: requirements-docs.txt
	python3 -c 'import ensurepip, venv' || tools/packages.sh python3:python3 ensurepip:python3-venv
	[ -x $(PYTHON) ] || python3 -m venv $(VENV)
	$(PYTHON) -m pip install -q --disable-pip-version-check -r requirements-docs.txt
	touch $@

.PHONY: help setup build wheel packages demo test test-rust test-python aarch64 test-aarch64 test-packages check check-rust check-orders check-python check-tree docs bench papers fuzz mutants soak clean clean-stage
