# The front door. Every target is one call of the CLI or of a tool; .venv makes itself on first use.
.DEFAULT_GOAL := help
LINE ?=
RUN_ARGS ?=
PY := .venv/bin/python

.venv/.host: docker/host-venv.sh gpuyard/requirements.txt
	docker/host-venv.sh .venv gpuyard/requirements.txt $@

.venv/.tests: .venv/.host tests/requirements.txt
	docker/host-venv.sh .venv tests/requirements.txt $@
