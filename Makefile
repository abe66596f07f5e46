# make demo | test | test-main | test-packets | test-devices | test-long | test-pythons | test-reproduction |
# test-beside-devices | docs | browser | view-load | view-pictures | pictures | firmware | lint | kernels | bench-kernels |
# reproduce | bench | bench-short | bench-long | fuzz | soak | collected | clean : each sets up by itself.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
REPORT ?= demo-report
# Tests build firmware with a make of their own, which is not to ask this one for processors.
PYTEST := env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL $(BIN)/python -m pytest

# A sourced ROS installation is used as it is; without one, real ROS 2 comes from PyPI.
HAVE_ROS := $(shell $(PYTHON) -c 'import rclpy' 2>/dev/null && echo yes)
ifeq ($(HAVE_ROS),yes)
VENV_FLAGS := --system-site-packages
EXTRAS := hardware,sensing,bag,learning,video,view,test
else
VENV_FLAGS :=
EXTRAS := ros,hardware,sensing,bag,learning,video,view,test
endif

# Bytecode is kept, as compiled kernels are: the tests start hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: browser view-load view-pictures collected commands docs newcomer pictures demo test test-main \
  test-packets test-devices test-long test-pythons test-reproduction test-beside-devices test-computing \
  firmware lint kernels bench-kernels everything reproduce bench bench-short bench-long fuzz soak clean setup
.DEFAULT_GOAL := demo

setup: $(VENV)/.ready

$(VENV)/.ready: setup.py
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' || \
	  { echo "softarm_ros needs Python 3.10 to 3.13; $(PYTHON) is $$($(PYTHON) --version)"; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || \
	  { echo "Python's venv module is missing: sudo apt-get install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV_FLAGS) $(VENV)
	@echo "installing softarm_ros[$(EXTRAS)] into $(VENV)"
	@$(BIN)/pip install --quiet --disable-pip-version-check -e '.[$(EXTRAS)]'
	@touch $@

# The package of the papers' experiments and benchmarks, reproduction/.
$(VENV)/.reproduction: $(VENV)/.ready reproduction/pyproject.toml
	@$(BIN)/pip install --quiet --disable-pip-version-check -e ./reproduction
	@touch $@

$(VENV)/.lint: $(VENV)/.reproduction
	@$(BIN)/pip install --quiet --disable-pip-version-check -e '.[lint]'
	@touch $@

$(VENV)/.bench: $(VENV)/.reproduction
	@$(BIN)/pip install --quiet --disable-pip-version-check -e './reproduction[bench]'
	@touch $@

# All of these at once: one resolution of what they need instead of four. uv takes a fraction of
# pip's time, but sees neither pip's settings nor the packages of a ROS installation.
PIP := $(BIN)/pip install --quiet --disable-pip-version-check
UV := $(PIP) uv && $(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python
ALL := -e '.[$(EXTRAS),lint,docs]' -e './reproduction[bench]'
everything: $(VENV)/.everything
$(VENV)/.everything: setup.py reproduction/pyproject.toml
	$(PYTHON) -m venv $(VENV_FLAGS) $(VENV)
	@$(if $(HAVE_ROS),$(PIP) $(ALL),$(UV) $(ALL) || $(PIP) $(ALL))
	@touch $(addprefix $(VENV)/,.ready .reproduction .lint .bench .docs) $@

demo: setup
	$(BIN)/softarm demo --report $(REPORT)

# What computes and simulated arms over topics fill the processors together: an arm mostly waits,
# and a busy computer makes it slow and nothing else. Sensors that wait for packets (nine tenths of
# their time) go beside them and are printed when they are done; both end with Ctrl-C, and each goes
# on if the other fails. Files go in their order: by default those with few tests, among them the
# longest, would go last, while the other processors have nothing left to do.
WORKERS := $(shell echo $$(($$(nproc) + 1)))
test: $(VENV)/.reproduction
	@$(MAKE) --no-print-directory --jobs 2 test-packets test-main

test-main: $(VENV)/.reproduction
	$(PYTEST) --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder \
	  -m 'not wall_clock and not packets and not long'

test-packets: $(VENV)/.reproduction
	@$(PYTEST) --numprocesses 3 --dist load -m packets > $(VENV)/test-packets.log 2>&1; \
	  status=$$?; cat $(VENV)/test-packets.log; exit $$status

# Reads all tests and runs none: so each is compiled once, not by all workers of `make test` at once.
collected: $(VENV)/.reproduction
	@$(PYTEST) --collect-only -qq > $(VENV)/collected.log 2>&1 || { cat $(VENV)/collected.log; exit 1; }

# Boards and devices that run on the computer's clock have it to themselves, one after another.
test-devices: $(VENV)/.reproduction
	$(PYTEST) -m wall_clock

# Minutes of computing: whether experiments give what shipped files state, and what an arm is like. And a run off
# real time of which `make test` has a sister.
test-long: $(VENV)/.reproduction
	$(PYTEST) -m long

# The tests under each Python that is installed here (as python3.10 and so on), in an environment of its own.
test-pythons:
	@for version in 3.10 3.11 3.12 3.13; do \
	  python$$version --version 2> /dev/null || { echo "no python$$version here"; continue; }; \
	  $(MAKE) --no-print-directory test PYTHON=python$$version VENV=.venv-$$version || exit 1; done

# The tests of reproduction/, which is a package of its own.
REPRODUCTION := $(PYTEST) -m 'not wall_clock' reproduction/test
test-reproduction: $(VENV)/.reproduction
	$(REPRODUCTION) --numprocesses auto --dist loadfile
	$(PYTEST) -m wall_clock reproduction/test

# Devices mostly wait for the clock. What only computes goes beside them, and gives way to them at once.
IDLE := $(shell chrt --idle 0 true 2> /dev/null && echo chrt --idle 0 || echo nice -n 19)
test-beside-devices: $(VENV)/.reproduction
	@$(MAKE) --no-print-directory --jobs 2 test-devices test-computing
	$(PYTEST) -m wall_clock reproduction/test

test-computing: $(VENV)/.reproduction
	@$(IDLE) $(REPRODUCTION) > $(VENV)/test-computing.log 2>&1; \
	  status=$$?; cat $(VENV)/test-computing.log; exit $$status

# Both boards, in firmware/build, and their sizes; says what is left out for want of a compiler.
firmware:
	@$(MAKE) -s --no-print-directory -C firmware boards

# What numpy for Python 3.10 says of its types is not what later ones say.
lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@if $(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then \
	  echo $(BIN)/mypy; $(BIN)/mypy; else echo 'mypy: left out, it needs Python 3.11'; fi
	$(BIN)/lint-imports --config setup.cfg
	$(BIN)/lint-imports --config import_cycles.cfg

# Compiles what the arms, with emulated devices too, and their tests need, where that has not been
# done: once, not in each test. Without the boards' compilers what needs none.
# Two at a time (make --jobs 2): what takes longest first, and no two side by side that share most.
RIGS := $(basename $(notdir $(wildcard config/rigs/*.yaml)))
FIRST := hydraulic_arm cable_arm pneumatic_arm pam_arm fishbone_arm
kernels: $(addprefix kernels-,$(FIRST) $(filter-out $(FIRST),$(RIGS)))

kernels-%: setup
	@$(BIN)/python -m softarm_ros.nodes.prepare_kernels $* --backend emulated || \
	  $(BIN)/python -m softarm_ros.nodes.prepare_kernels $*

# What the benchmark compiles beside that, and what it compares with (pyelastica): one thread for a
# minute, which other work can fill.
bench-kernels: $(VENV)/.bench kernels
	@$(BIN)/python -c 'from softarm_reproduction.bench import run_bench as run; \
	  run(("cable_arm", "dynamics", "hydraulics", "estimators"), 1)'

# The site, in site/; a warning is an error.
docs: $(VENV)/.docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

$(VENV)/.docs: $(VENV)/.ready
	@$(BIN)/pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@

# The viewer's buttons on a running arm, in a headless Chromium (apt: chromium chromium-driver).
browser: $(VENV)/.ready
	@$(BIN)/pip install --quiet --disable-pip-version-check -e '.[browser]'
	$(PYTEST) -s test/nodes/test_viewer.py test/nodes/test_viewer_goals.py test/nodes/test_viewer_runs.py

# The pictures in docs/viewer.md, of all arms as they run in the viewer; some minutes.
view-pictures: $(VENV)/.ready
	@$(BIN)/pip install --quiet --disable-pip-version-check -e '.[browser]'
	$(BIN)/python test/nodes/viewer_pictures.py

# What the viewer with three tabs costs the loop, and its frames a second; on a quiet computer.
view-load: $(VENV)/.ready
	@$(BIN)/pip install --quiet --disable-pip-version-check -e '.[browser]'
	$(BIN)/python test/nodes/viewer_load.py

# What README and docs say to type is typed, where no device or file of the reader is needed.
commands: $(VENV)/.reproduction
	$(PYTEST) test/docs/commands_that_run.py

# A newcomer's way in a fresh clone of the last commit, timed; some minutes.
newcomer:
	@$(PYTHON) test/newcomer.py

# The pictures of arms in README and docs: drawn anew, some minutes of computing.
pictures: setup
	$(BIN)/softarm render cable_arm --output docs/images/cable_arm.gif
	@for rig in cable_arm fishbone_arm hydraulic_arm pam_arm pneumatic_arm trunk; do \
	  $(BIN)/softarm render $$rig --output docs/images/$$rig.png || exit 1; done

# The experiments of the arms' papers, a page an arm in study/; ARMS names some of them.
reproduce: $(VENV)/.reproduction
	$(BIN)/softarm reproduce $(ARMS)

bench: $(VENV)/.bench
	$(BIN)/softarm bench

# The same rows and bars, each a median of fewer runs.
bench-short: $(VENV)/.bench
	$(BIN)/softarm bench --repeats 5

# The stepper driver against its board for a minute: latency to the coils, and loss.
bench-long: $(VENV)/.bench
	$(BIN)/softarm bench steppers --long

# A million garbled packets of each protocol of motion capture; some minutes.
fuzz: setup
	$(BIN)/python test/perception/fuzz_packets.py

# The real graph against the wall clock: 100 Hz for a minute and more, then 40 starts of every rig,
# quiet and beside two busy loops. About three hours; counts holds and missed cycles.
soak: setup
	$(BIN)/softarm run cable_arm --trajectory line_small --laps 6 --json soak.json
	$(BIN)/softarm soak
	$(BIN)/softarm soak --busy 2
	$(BIN)/softarm soak --busy 2 --rate 2

clean:
	rm -rf $(VENV) build install log demo-report study site *.egg-info firmware/build \
	  reproduction/build reproduction/*.egg-info
