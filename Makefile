PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test reader browser lint bench ready-models results clean

demo: $(VENV)/.installed reader
	$(BIN)/cohegraph demo --out build/demo-model
	$(BIN)/cohegraph assess examples/*.txt --model build/demo-model

test: $(VENV)/.installed-dev reader browser
	$(BIN)/pytest -n 2 --dist loadfile

# At once where it is installed. Where it cannot be downloaded, its tests are skipped, and say so.
reader: $(VENV)/.installed
	-$(BIN)/cohegraph parts install

# The tests of the page need Chromium; where it cannot be installed they are skipped, and say so.
browser:
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		apt-get install --yes --quiet chromium >/dev/null 2>&1 || { apt-get update --quiet >/dev/null 2>&1 && \
		apt-get install --yes --quiet chromium >/dev/null 2>&1; }; } || true

lint: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy --strict tests/public_api.py
	$(BIN)/lint-imports

bench: $(VENV)/.installed-dev
	$(BIN)/python benchmarks/counting.py
	$(BIN)/python benchmarks/scoring.py
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/gcdc_domain.py
	$(BIN)/python benchmarks/pipeline.py
	$(BIN)/python benchmarks/many_documents.py
	$(BIN)/python benchmarks/throughput.py

ready-models: $(VENV)/.installed
	$(BIN)/python -m cohegraph.models

results: $(VENV)/.installed
	$(BIN)/python docs/results/rebuild.py

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("cohegraph needs Python 3.11 or newer") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable ".[models,serve]"
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(PIP) --editable ".[models,serve,stanza,ray,dev]"
	touch $@

clean:
	rm -rf $(VENV) build
