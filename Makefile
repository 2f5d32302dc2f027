# Two commands do everything on a machine with Python 3.11 or newer: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
DEMO := demo-output
WORKERS ?= 2

.PHONY: demo test sessions fuzz check formats clean

# The stamp is as new as the last successful install, so that a changed pyproject.toml installs again.
$(VENV)/installed: pyproject.toml
	@echo "1 of 2: makes the virtual environment $(VENV)"
	$(PYTHON) -m venv $(VENV)
	@echo "2 of 2: installs tdc and what it needs, some 500 MB to load: a few minutes, in which pip says nothing"
	$(VENV)/bin/pip install --quiet --editable '.[dev]'
	touch $@

demo: $(VENV)/installed
	mkdir -p $(DEMO)
	$(VENV)/bin/tdc complete-image sample_data/astronaut.png -o $(DEMO)/filled.png --mask sample_data/mask_text.png \
	    --reference sample_data/astronaut.png --panel $(DEMO)/panel.png --report $(DEMO)/report.json --overwrite
	@echo "The completed photograph is $(DEMO)/filled.png; $(DEMO)/panel.png shows it beside the incomplete one."

test: $(VENV)/installed
	$(VENV)/bin/python -m pytest -q -n $(WORKERS) --dist worksteal

# All commands that the README, docs/methods.md and docs/tensors.md show, with those that take minutes, which the tests leave out.
sessions: $(VENV)/installed
	TDC_LONG=1 $(VENV)/bin/python -m pytest -q tests/test_docs.py

# Ten thousand new damaged files and odd calls, which takes ten minutes; the tests try some hundreds that are always the same.
fuzz: $(VENV)/installed
	TDC_FUZZ=10000 $(VENV)/bin/python -m pytest -q tests/test_fuzz.py tests/test_fuzz_tensors.py

check: $(VENV)/installed
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy

# Measures the tables of docs/formats.md anew.
formats: $(VENV)/installed
	$(VENV)/bin/python tests/test_round_trip.py
	$(VENV)/bin/python tests/test_clip_table.py
	$(VENV)/bin/python tests/test_item_table.py

clean:
	rm -rf $(VENV) $(DEMO) build *.egg-info
