# `make demo` and `make test` are all a newcomer needs; both make .venv the first time.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed

.PHONY: demo test lint check web clean

demo: $(INSTALLED)
	$(BIN)/python -m parity.check
	$(BIN)/python -m algorithms.train_ppo
	$(BIN)/python -m algorithms.nashconv model.zip
	@echo "the curve is in model.png; play against it: $(BIN)/python -m algorithms.play model.zip"

test: $(INSTALLED)
	$(BIN)/python -m pytest

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

check: $(INSTALLED)
	$(BIN)/python -m parity.check

# Optional: the browser page then runs ONNX models itself instead of reading their table.
web:
	npm ci --no-audit --no-fund

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[all,test]'
	touch $@

clean:
	rm -rf .venv build dist *.egg-info
