# Everything runs in its own environment, .venv, which is created on first use.
# `make` alone lists the targets.

VENV := .venv
ifeq ($(OS),Windows_NT)
PYTHON ?= python
BIN := $(VENV)/Scripts
EXE := .exe
else
PYTHON ?= python3
BIN := $(VENV)/bin
EXE :=
endif
KERNELS := $(wildcard src/clustruct/kernels/*/*.py src/clustruct/kernels/*/*.pxd)
# Extra arguments for pytest, as in `make test ARGS="-k kernels -x"`.
ARGS ?=
# The revision that `make timing` compares the working tree with.
BASE ?= origin/main
# Of `make fuzz` and `make sanitize`: how long, which seed, which targets, how many processes.
MINUTES ?= 10
SEED ?=
ONLY ?=
JOBS ?=
FUZZ = $(BIN)/python -m fuzz --minutes $(MINUTES) $(SEED:%=--seed %) $(JOBS:%=--jobs %)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test suite test-slow golden lint format typecheck coverage bench timing docs clean \
	distclean browser fuzz sanitize sanitized-kernels wheel wheels oldest nightly torch no-compiler

help:
	@echo 'make demo       fit features, samples and tasks to tables, with reports'
	@echo 'make test       lint, type-check and test, the kernels compiled and uncompiled'
	@echo 'make suite      the tests alone;  make test-slow: those that take longer'
	@echo 'make coverage   which lines and branches the tests run'
	@echo 'make lint       check style, format, spelling and the files that GitHub reads'
	@echo 'make format     fix style and format automatically'
	@echo 'make typecheck  check types'
	@echo 'make golden     write model files of this version, which later ones have to read'
	@echo 'make fuzz       random and hostile inputs; MINUTES=60 SEED=1 ONLY=kernels,fits JOBS=2'
	@echo 'make sanitize   kernels with sanitizers: their tests, then MINUTES=10 of fuzzing'
	@echo 'make bench      measure speed against other packages'
	@echo 'make timing     compare the speed of the working tree with that of BASE=origin/main'
	@echo 'make wheel      build a wheel and an sdist, install each by itself and try it'
	@echo 'make wheels     the wheels of a release for this system, by cibuildwheel'
	@echo 'make oldest     the tests with the oldest packages allowed;  make nightly: the newest'
	@echo 'make torch      the tests with torch tensors, which are skipped where torch is missing'
	@echo 'make no-compiler  install where there is no C compiler, and try it'
	@echo 'make docs       build the documentation, docs/_build/html/index.html'
	@echo 'make clean      remove build products;  make distclean: also the environment'
	@echo
	@echo 'They work in $(VENV), made by PYTHON=$(PYTHON) (3.11 or newer); wheel, wheels, oldest, nightly,'
	@echo 'torch and no-compiler make environments of their own in build/.'

# Packages are fetched while the kernels are compiled.
demo: $(VENV)/.build
	@$(MAKE) --no-print-directory --jobs=2 $(VENV)/.base $(VENV)/.kernels
	@$(BIN)/clustruct demo

test: lint typecheck suite

suite: $(VENV)/.dev $(VENV)/.kernels browser
	$(BIN)/python -m pytest --numprocesses auto $(ARGS)
	CLUSTRUCT_UNCOMPILED=1 $(BIN)/python -m pytest --numprocesses auto tests/kernels $(ARGS)

# Both runs add to the same figures: compiled kernels cannot be measured, so that those of the
# uncompiled ones count for them.
coverage: $(VENV)/.dev $(VENV)/.kernels browser
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest --numprocesses auto $(ARGS)
	CLUSTRUCT_UNCOMPILED=1 $(BIN)/coverage run -m pytest --numprocesses auto tests/kernels $(ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage html --quiet --fail-under=0
	$(BIN)/coverage report

test-slow: $(VENV)/.dev $(VENV)/.kernels
	$(BIN)/python -m pytest -m slow $(ARGS)

# Schemas that come with the tool: nothing is fetched.
SCHEMA = $(BIN)/check-jsonschema --quiet --builtin-schema
lint: $(VENV)/.dev $(VENV)/.kernels
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/codespell
	$(SCHEMA) vendor.github-workflows .github/workflows/*.yml
	$(SCHEMA) vendor.dependabot .github/dependabot.yml
	$(SCHEMA) vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(SCHEMA) vendor.github-issue-forms .github/ISSUE_TEMPLATE/bug.yml .github/ISSUE_TEMPLATE/idea.yml
	$(SCHEMA) vendor.citation-file-format CITATION.cff

format: $(VENV)/.dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

typecheck: $(VENV)/.dev $(VENV)/.kernels
	$(BIN)/mypy

golden: $(VENV)/.dev $(VENV)/.kernels
	$(BIN)/python -m tests.persistence.golden

bench: $(VENV)/.bench $(VENV)/.kernels
	$(BIN)/python benchmarks/run.py $(ARGS)

timing: $(VENV)/.dev $(VENV)/.kernels
	$(BIN)/python benchmarks/revisions.py $(BASE) $(ARGS)

# Each of these makes environments of its own in build/, and leaves .venv alone.
wheel wheels oldest nightly torch no-compiler:
	$(PYTHON) .ci/environments.py $@ $(ARGS)

fuzz: $(VENV)/.dev $(VENV)/.kernels
	$(FUZZ) $(ONLY:%=--only %)

# The kernels with AddressSanitizer and UndefinedBehaviorSanitizer, in a copy of the package beside
# the usual one. Python itself is not compiled with them, so that their libraries are loaded first.
# Leaks are not looked for: Python keeps memory until it ends. Python's own allocator hands out parts
# of large blocks, in which overruns would not show, and is turned off.
SANITIZED := build/sanitize
SANITIZERS := -O1 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
# Seen from other folders as well, where tests start processes.
UNDER_SANITIZERS = PYTHONPATH=$(CURDIR)/$(SANITIZED) PYTHONMALLOC=malloc \
	ASAN_OPTIONS=detect_leaks=0:halt_on_error=1:allocator_may_return_null=1 \
	UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 \
	LD_PRELOAD="$$($(CC) -print-file-name=libasan.so) $$($(CC) -print-file-name=libubsan.so)"
sanitize: sanitized-kernels
	$(UNDER_SANITIZERS) $(BIN)/python -m pytest -p no:cacheprovider --numprocesses auto tests/kernels $(ARGS)
	$(UNDER_SANITIZERS) $(FUZZ) --only kernels

sanitized-kernels: $(VENV)/.dev
	rm -rf $(SANITIZED) && mkdir -p $(SANITIZED)
	cp -r src/clustruct $(SANITIZED)/clustruct && find $(SANITIZED) -name "*.so" -delete
	CLUSTRUCT_FLAGS="$(SANITIZERS)" $(BIN)/python setup.py --quiet build_ext \
		--build-lib $(SANITIZED) --build-temp $(SANITIZED)/objects
	@$(UNDER_SANITIZERS) $(BIN)/python -c 'from clustruct import kernels; \
		assert kernels.COMPILED and "sanitize" in kernels.__file__, kernels.__file__'

docs: $(VENV)/.docs $(VENV)/.dev $(VENV)/.kernels browser
	$(BIN)/python -m sphinx -b html -W --keep-going -q docs docs/_build/html
	CLUSTRUCT_SITE=docs/_build/html $(BIN)/python -m pytest -q tests/site
	@echo 'Read docs/_build/html/index.html'

clean:
	rm -rf build dist src/*.egg-info docs/_build docs/generated docs/auto_examples docs/tutorials \
		clustruct-demo
	rm -rf .hypothesis .mypy_cache .pytest_cache .ruff_cache htmlcov .coverage .coverage.*
	find src/clustruct/kernels -name '*.so' -o -name '*.pyd' -o -name '*.c' | xargs rm -f
	rm -f $(VENV)/.build $(VENV)/.base $(VENV)/.dev $(VENV)/.bench $(VENV)/.docs $(VENV)/.kernels
	find . -path ./$(VENV) -prune -o -name __pycache__ -type d -exec rm -rf {} +

distclean: clean
	rm -rf $(VENV)

# The tests of the report look at it in a browser. They take one that is there; where there is none,
# root on Debian gets one, and elsewhere those tests are skipped and say so.
APT := DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=1 -o Acquire::http::Timeout=20
browser:
	@command -v chromium > /dev/null && command -v chromedriver > /dev/null || { \
		test "`id -u`" = 0 && command -v apt-get > /dev/null && { \
			echo 'Installing chromium, for the tests of the report'; \
			{ $(APT) update; $(APT) install -y chromium chromium-driver; } > /dev/null 2>&1; }; } || true

# ---- The environment. Each stamp file says that a step was done; a step is done again when what
# it depends on has changed.

# What the build requires goes into the environment too, so that a changed kernel is recompiled in
# seconds; installing leaves the kernels to the step that compiles them.
PIP := $(BIN)/python -m pip --disable-pip-version-check
# Twice quiet: errors are shown, and the complaints of pip about its own settings are not. Python
# compiles a module to bytecode when it is first imported; to compile all of them here takes longer
# than the download. That bytecode has to be kept, or every process would compile it again.
unexport PYTHONDONTWRITEBYTECODE
QUIETLY := install --quiet --quiet --no-compile
INSTALL := CLUSTRUCT_UNCOMPILED=1 $(PIP) $(QUIETLY) --no-build-isolation

$(BIN)/python$(EXE):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "clustruct needs Python 3.11 or newer; $(PYTHON) is: `$(PYTHON) --version 2>&1`."; \
		echo 'Name another one, for example: make demo PYTHON=python3.12'; exit 1; }
	@echo 'Creating $(VENV)'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.build: pyproject.toml | $(BIN)/python$(EXE)
	@$(BIN)/python -c 'import tomllib; \
		print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' \
		> $(VENV)/build-requires.txt
	@$(PIP) $(QUIETLY) -r $(VENV)/build-requires.txt
	@touch $@

$(VENV)/.base: $(VENV)/.build setup.py
	@echo 'Installing clustruct, NumPy, SciPy, scikit-learn, pandas, pyarrow and matplotlib in $(VENV)'
	@$(INSTALL) --editable '.[plot,cli,report]'
	@touch $@

# Not as an extra of the package: some peers of the benchmarks are built in isolation.
$(VENV)/.dev $(VENV)/.bench $(VENV)/.docs: $(VENV)/.%: $(VENV)/.base
	@echo 'Installing what `$*` needs in $(VENV)'
	@$(BIN)/python -c 'import tomllib; \
		extras = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]; \
		print(*extras["$*"], sep="\n")' > $(VENV)/$*-requires.txt
	@$(PIP) $(QUIETLY) -r $(VENV)/$*-requires.txt
	@touch $@

$(VENV)/.kernels: $(KERNELS) setup.py | $(VENV)/.build
	@echo 'Compiling the kernels: about a minute on two cores'
	@$(BIN)/python setup.py --quiet build_ext --inplace
	@# Without a compiler there is no stamp, and the next call tries again.
	@! $(BIN)/python -W ignore -c 'import sys; sys.path.insert(0, "src/clustruct"); \
		import kernels; assert kernels.COMPILED' 2> /dev/null || touch $@
