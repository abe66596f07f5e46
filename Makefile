# make demo | test | test-main | test-packets | test-devices | test-long | test-pythons | test-reproduction |
# test-beside-devices | docs | browser | view-load | view-pictures | pictures | firmware | lint | kernels | bench-kernels |
# reproduce | bench | bench-short | bench-long | fuzz | soak | collected | clean : each target installs what it needs.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
REPORT ?= demo-report
# Tests build firmware with their own make, which must not request jobs from this one.
PYTEST := env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL $(BIN)/python -m pytest

# A sourced ROS installation is used unchanged; without one, real ROS 2 is installed from PyPI. An environment that is
# activated may contain that one: the new environment would not see it.
HAVE_ROS := $(shell $(PYTHON) -c 'import os, sys, rclpy; \
  own = sys.prefix != sys.base_prefix and rclpy.__file__.startswith(os.path.join(sys.prefix, "")); \
  sys.exit(own)' 2>/dev/null && echo yes)
ifeq ($(HAVE_ROS),yes)
VENV_FLAGS := --system-site-packages
EXTRAS := hardware,sensing,bag,learning,video,view,test
else
VENV_FLAGS :=
EXTRAS := ros,hardware,sensing,bag,learning,video,view,test
endif

# Keep bytecode, as well as compiled kernels: the tests start hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: browser view-load view-pictures collected commands docs newcomer pictures demo test test-main \
  test-packets test-devices test-long test-pythons test-reproduction test-beside-devices test-computing \
  firmware lint kernels bench-kernels everything reproduce bench bench-short bench-long fuzz soak clean setup
.DEFAULT_GOAL := demo

# uv takes a third of pip's time. It gets the package index from pip's settings, but not the packages
# of a sourced ROS installation; there, and where uv cannot install, pip does.
PIP := $(BIN)/pip --disable-pip-version-check
UV := UV_DEFAULT_INDEX="$${UV_DEFAULT_INDEX:-$$($(PIP) config get :env:.index-url 2> /dev/null || \
  $(PIP) config get global.index-url 2> /dev/null)}" $(BIN)/uv pip --quiet
define with-uv
$(PIP) install --quiet uv && $(UV) install --compile-bytecode --python $(BIN)/python $(1) || \
  { echo 'uv cannot install this: pip does'; $(PIP) install --quiet $(1); }
endef
install = $(if $(HAVE_ROS),$(PIP) install --quiet $(1),$(with-uv))

setup: $(VENV)/.ready

$(VENV)/.ready: setup.py
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' || \
	  { echo "softarm_ros needs Python 3.10 to 3.13; $(PYTHON) is $$($(PYTHON) --version)"; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || \
	  { echo "Python's venv module is missing: sudo apt-get install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV_FLAGS) $(VENV)
	@echo "installing softarm_ros[$(EXTRAS)] into $(VENV)"
	@$(call install,-e '.[$(EXTRAS)]')
	@touch $@

# The package with the papers' experiments and benchmarks, reproduction/.
$(VENV)/.reproduction: $(VENV)/.ready reproduction/pyproject.toml
	@$(call install,-e ./reproduction)
	@touch $@

$(VENV)/.lint: $(VENV)/.reproduction
	@$(call install,-e '.[lint]')
	@touch $@

$(VENV)/.bench: $(VENV)/.reproduction
	@$(call install,-e './reproduction[bench]')
	@touch $@

# Installs all of these at once: one dependency resolution instead of four.
ALL := -e '.[$(EXTRAS),lint,docs]' -e ./reproduction
everything: $(VENV)/.everything
$(VENV)/.everything: setup.py reproduction/pyproject.toml
	$(PYTHON) -m venv $(VENV_FLAGS) $(VENV)
	@$(call install,$(ALL))
	@touch $(addprefix $(VENV)/,.ready .reproduction .lint .docs) $@

demo: setup
	$(BIN)/softarm demo --report $(REPORT)

# Computing tests and simulated arms over topics share the processors: an arm mostly waits, and a
# busy computer only slows it down. Tests of sensors wait for packets nine tenths of their time; they
# run in parallel, and their output is printed at the end. Ctrl-C ends both; if one fails, the other
# continues. Test files run in their order: by default files with few tests, among them the longest,
# would run last, while the other processors have nothing left to do.
WORKERS := $(shell echo $$(($$(nproc) + 1)))
test: $(VENV)/.reproduction
	@$(MAKE) --no-print-directory --jobs 2 test-packets test-main

test-main: $(VENV)/.reproduction
	$(PYTEST) --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder \
	  -m 'not wall_clock and not packets and not long'

test-packets: $(VENV)/.reproduction
	@$(PYTEST) --numprocesses 3 --dist load -m packets > $(VENV)/test-packets.log 2>&1; \
	  status=$$?; cat $(VENV)/test-packets.log; exit $$status

# Collects all tests without running any, so that each is compiled once, not by every worker of `make test`.
collected: $(VENV)/.reproduction
	@$(PYTEST) --collect-only -qq > $(VENV)/collected.log 2>&1 || { cat $(VENV)/collected.log; exit 1; }

# Tests of boards and devices that run on the computer's clock: one after another, with nothing in parallel.
test-devices: $(VENV)/.reproduction
	$(PYTEST) -m wall_clock

# Tests that compute for minutes: do experiments identify the values of shipped files, and those of a simulated arm? Also
# a run that is not in real time; `make test` has a similar one.
test-long: $(VENV)/.reproduction
	$(PYTEST) -m long test reproduction/test

# Runs the tests under each Python installed here (python3.10 and so on), each in its own environment.
test-pythons:
	@for version in 3.10 3.11 3.12 3.13; do \
	  python$$version --version 2> /dev/null || { echo "no python$$version here"; continue; }; \
	  $(MAKE) --no-print-directory test PYTHON=python$$version VENV=.venv-$$version || exit 1; done

# The tests of reproduction/, a separate package.
REPRODUCTION := $(PYTEST) -m 'not wall_clock and not long' reproduction/test
test-reproduction: $(VENV)/.reproduction
	$(REPRODUCTION) --numprocesses auto --dist loadfile
	$(PYTEST) -m wall_clock reproduction/test

# Device tests mostly wait for the clock. Tests that only compute run in parallel, at the lowest priority, and on one processor:
# emulated boards are sessions of their own, which Linux gives no more time than a session at the lowest priority (autogroup).
IDLE := $(shell chrt --idle 0 true 2> /dev/null && echo chrt --idle 0 || echo nice -n 19)
test-beside-devices: $(VENV)/.reproduction
	@$(MAKE) --no-print-directory --jobs 2 test-devices test-computing
	$(PYTEST) -m wall_clock reproduction/test

test-computing: $(VENV)/.reproduction
	@$(IDLE) $(REPRODUCTION) > $(VENV)/test-computing.log 2>&1; \
	  status=$$?; cat $(VENV)/test-computing.log; exit $$status

# Builds the firmware of both boards in firmware/build and prints their sizes; names boards skipped for lack of a compiler.
firmware:
	@$(MAKE) -s --no-print-directory -C firmware boards

# mypy needs Python 3.11: numpy for Python 3.10 has other type annotations than later versions.
lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@if $(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then \
	  echo $(BIN)/mypy; $(BIN)/mypy; else echo 'mypy: left out, it needs Python 3.11'; fi
	$(BIN)/lint-imports --config setup.cfg
	$(BIN)/lint-imports --config import_cycles.cfg

# Compiles the kernels of the arms, also with emulated devices, and of their tests: once, not in each
# test. Compiled kernels are kept. Without the boards' compilers, it compiles the kernels that need none.
# With make --jobs 2, the slowest rigs start first, and rigs that share most kernels are not neighbours.
RIGS := $(basename $(notdir $(wildcard config/rigs/*.yaml)))
FIRST := hydraulic_arm cable_arm pneumatic_arm pam_arm fishbone_arm
kernels: $(addprefix kernels-,$(FIRST) $(filter-out $(FIRST),$(RIGS)))

kernels-%: setup
	@$(BIN)/python -m softarm_ros.nodes.prepare_kernels $* --backend emulated || \
	  $(BIN)/python -m softarm_ros.nodes.prepare_kernels $*

# Compiles the additional kernels of the benchmark. This takes one thread for half a minute, so other work can run in
# parallel. It begins once the two rigs with most of its other kernels are prepared.
bench-kernels: $(VENV)/.reproduction kernels-hydraulic_arm kernels-cable_arm
	@$(BIN)/python -c 'from softarm_reproduction.bench import run_bench as run; \
	  run(("cable_arm", "dynamics", "hydraulics", "estimators"), 1)'

# Builds the site in site/; a warning is an error.
docs: $(VENV)/.docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

$(VENV)/.docs: $(VENV)/.ready
	@$(call install,-e '.[docs]')
	@touch $@

# Tests the viewer's buttons on a running arm, in a headless Chromium (apt: chromium chromium-driver).
browser: $(VENV)/.ready
	@$(call install,-e '.[browser]')
	$(PYTEST) -s test/nodes/test_viewer.py test/nodes/test_viewer_goals.py test/nodes/test_viewer_runs.py

# Takes the pictures in docs/viewer.md: all arms running in the viewer; some minutes.
view-pictures: $(VENV)/.ready
	@$(call install,-e '.[browser]')
	$(BIN)/python test/nodes/viewer_pictures.py

# Measures how much the viewer with three tabs slows the loop, and its frames per second; needs an idle computer.
view-load: $(VENV)/.ready
	@$(call install,-e '.[browser]')
	$(BIN)/python test/nodes/viewer_load.py

# Runs the commands of README and docs that need no device and no file of the reader.
commands: $(VENV)/.reproduction
	$(PYTEST) test/docs/commands_that_run.py

# Times a newcomer's first steps in a fresh clone of the last commit; some minutes.
newcomer:
	@$(PYTHON) test/newcomer.py

# Redraws the pictures of arms in README and docs; some minutes of computing.
pictures: setup
	$(BIN)/softarm render cable_arm --output docs/images/cable_arm.gif
	@for rig in cable_arm fishbone_arm hydraulic_arm pam_arm pneumatic_arm trunk; do \
	  $(BIN)/softarm render $$rig --output docs/images/$$rig.png || exit 1; done

# Runs the experiments of the arms' papers and writes one page per arm in study/; ARMS selects arms.
reproduce: $(VENV)/.reproduction
	$(BIN)/softarm reproduce $(ARMS)

bench: $(VENV)/.bench
	$(BIN)/softarm bench

# The same rows and bars as bench; each value is a median of fewer runs. Pyelastica, the reference of one row, is not
# installed for it: its kernels compile for 20 s.
bench-short: $(VENV)/.reproduction
	$(BIN)/softarm bench --repeats 5

# Runs the stepper driver with its board for a minute; measures latency to the coils and losses.
bench-long: $(VENV)/.bench
	$(BIN)/softarm bench steppers --long

# Parses a million garbled packets of each motion-capture protocol; some minutes.
fuzz: setup
	$(BIN)/python test/perception/fuzz_packets.py

# Runs the real graph on the wall clock: 100 Hz for more than a minute, then 40 starts of every rig,
# on an idle computer and beside two busy loops. Takes about three hours; counts holds and missed cycles.
soak: setup
	$(BIN)/softarm run cable_arm --trajectory line_small --laps 6 --json soak.json
	$(BIN)/softarm soak
	$(BIN)/softarm soak --busy 2
	$(BIN)/softarm soak --busy 2 --rate 2

clean:
	rm -rf $(VENV) build install log demo-report study site *.egg-info firmware/build \
	  reproduction/build reproduction/*.egg-info
