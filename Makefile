# `make demo` and `make test` are all a newcomer needs; both make .venv the first time.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed

.PHONY: demo test lint check docs dist web torture clean

demo: $(INSTALLED)
	$(BIN)/python -m parity.check
	$(BIN)/python -m algorithms.train_ppo
	$(BIN)/python -m algorithms.nashconv model.zip
	@echo "the curve is in model.png; play against it: $(BIN)/python -m algorithms.play model.zip"

# A hundred processes are started: what Python compiled is kept, whatever the environment says.
test: $(INSTALLED)
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto --maxprocesses 6 --dist loadfile --no-loadscope-reorder

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

check: $(INSTALLED)
	$(BIN)/python -m parity.check

# The table of docs/reliability.md: two to three minutes.
torture: $(INSTALLED)
	$(BIN)/python -m tests.torture

# The documentation as a site in build/site; a broken link is an error.
docs: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Build the sdist and the wheel; collect the sdist's tests; install the wheel into a fresh venv and
# use it from a folder that has an algorithms/ of its own.
dist: $(INSTALLED)
	rm -rf build dist
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dist]'
	$(BIN)/python -m build
	mkdir -p build/sdist build/elsewhere/algorithms
	tar -xzf dist/*.tar.gz -C build/sdist --strip-components=1
	cd build/sdist && ../../$(BIN)/python -m pytest --collect-only --quiet > ../collected.txt
	tail -1 build/collected.txt
	echo 'raise SystemExit("the algorithms/ of the folder is in the way")' > build/elsewhere/algorithms/__init__.py
	$(PYTHON) -m venv build/venv
	build/venv/bin/python -m pip install --quiet --constraint constraints.txt "$$(ls dist/*.whl)[all]"
	cd build/elsewhere && ../venv/bin/kuhn-bridge check
	cd build/elsewhere && ../venv/bin/kuhn-bridge train-ppo --steps 1000000
	cd build/elsewhere && ../venv/bin/kuhn-bridge nashconv model.zip --max 0.2

# Optional: the browser page then runs ONNX models itself instead of reading their table.
web:
	npm ci --no-audit --no-fund

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[all,gambit,test]'
	touch $@

clean:
	rm -rf .venv build dist *.egg-info
