# The front door. Every target is one call of the CLI or of a tool; .venv makes itself on first use.
.DEFAULT_GOAL := help
LINE ?=
IMAGE ?= workbench
RUN_ARGS ?=
REGISTRY ?= 127.0.0.1:5000
LINES ?=
KEY ?=
VERIFY_ARGS ?=
PYTEST_ARGS ?=
GPUYARD := .venv/bin/gpuyard
TEST := .venv/bin/python -m pytest $(PYTEST_ARGS)
SHELL_FILES = $(shell git ls-files '*.sh' .ci/run entrypoints/verify entrypoints/apt 'entrypoints/services/*/run') images/base/profile

.PHONY: help fetch reproduce build verify test test-all test-faults test-slurm test-k8s test-multinode lint fix run clean lock lock-host bench-build bench-compression bench-verify bench-start bench-ddp bench-publish pipeline runner-room

help: ## Show these targets
	@grep -hE '^[a-z0-9.-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9.-]+):.*## (.*)/  make \1\t\2/' | expand -t 22

build: .venv/.host ## Build the image of a line (LINE=2.9, IMAGE=workbench, runtime or devel)
	$(GPUYARD) build $(LINE) --image $(IMAGE)

verify: .venv/.host ## Build what is missing, start it, prove it, write reports/
	$(GPUYARD) verify $(LINE) --image $(IMAGE) $(VERIFY_ARGS)

run: .venv/.host ## Start JupyterLab and SSH as a user would (RUN_ARGS='--gpus all --ssh-key FILE')
	$(GPUYARD) run $(LINE) --image $(IMAGE) $(RUN_ARGS)

pipeline: .venv/.host ## Build, verify and publish workbench and runtime, and pull them again (REGISTRY=, LINES=all, KEY=)
	$(GPUYARD) pipeline --registry $(REGISTRY) --lines "$(LINES)" $(if $(KEY),--key $(KEY))

test: .venv/.tests ## Test the project: units, then the default image
	$(TEST) -m "not full"

test-all: .venv/.tests ## Everything: other lines, comparisons at full size
	$(TEST)

test-faults: .venv/.tests ## Put every known fault into a container of the image and compare verify's verdict
	$(TEST) tests/faults tests/verify/checks/test_driver.py

test-slurm: .venv/.tests ## Submit rendered jobs to a real Slurm, started by the tests (installs slurm-wlm where root may)
	$(TEST) tests/render/slurm

test-multinode: .venv/.tests ## Train on two nodes of a Docker network, and kill one
	$(TEST) tests/examples/test_multi_node.py tests/examples/test_node.py

test-k8s: .venv/.tests ## Check rendered Kubernetes objects against their API schemas and our policy
	$(TEST) tests/render/kubernetes

verify.pyz: .venv/.host $(shell git ls-files verify) ## The suite as one file: python3 verify.pyz
	.venv/bin/python -m gpuyard.acceptance.any_image

bench-verify: .venv/.tests ## Time the suite's profiles against the bare import of torch
	.venv/bin/python -m tests.bench.verify

lint: .venv/.tests ## ruff, mypy, shellcheck, hadolint, compose, actionlint, zizmor
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/shellcheck $(SHELL_FILES)
	.venv/bin/hadolint images/*/Dockerfile
	$(GPUYARD) engine start >/dev/null
	docker compose --profile gpu --profile cpu config --quiet
	.github/lint/workflows.sh

runner-room: ## Make room on a hosted runner; elsewhere nothing
	docker/runner-room.sh

fix: .venv/.tests ## Repair what ruff can repair by itself, and format
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .

fetch: .venv/.host ## Download every wheel of a line into the store, so that a build needs no network
	$(GPUYARD) fetch $(LINE)

reproduce: .venv/.host ## Make every layer of wheels of a line twice and compare with images/digests.toml
	$(GPUYARD) reproduce $(LINE)

lock: .venv/.host ## Resolve the locks of a line again (all lines without LINE)
	$(GPUYARD) lock $(LINE)

lock-host: .venv/.host ## Resolve gpuyard's own requirements again
	.venv/bin/uv pip compile -q --generate-hashes --universal --python-version 3.11 --no-header --no-emit-index-url --no-annotate gpuyard/requirements.in -o gpuyard/requirements.txt
	.venv/bin/uv pip compile -q --generate-hashes --universal --python-version 3.11 --no-header --no-emit-index-url --no-annotate tests/requirements.in -o tests/requirements.txt

bench-build: .venv/.tests ## Time builds: cold, warm, after an edit, and the plain Dockerfile way
	.venv/bin/python -m tests.bench.build

bench-compression: .venv/.tests ## What zstd costs and saves against the default, on two large libraries
	.venv/bin/python -m tests.bench.compression

bench-ddp: .venv/.tests ## Throughput of one process, two threads and two processes
	.venv/bin/python -m tests.bench.ddp

bench-start: .venv/.tests ## Time Jupyter and SSH to their first answer, against the bare programs
	.venv/bin/python -m tests.bench.start

bench-publish: .venv/.tests ## Time publishing what was built: first, again, a second image; disk of the registry
	.venv/bin/python -m tests.bench.publish

clean: .venv/.host ## Show and remove what gpuyard made (CLEAN_ARGS=--dry-run)
	$(GPUYARD) clean $(CLEAN_ARGS)

.venv/.host: docker/host-venv.sh gpuyard/requirements.txt
	docker/host-venv.sh .venv gpuyard/requirements.txt $@

.venv/.tests: .venv/.host tests/requirements.txt
	docker/test-tools.sh
	docker/host-venv.sh .venv tests/requirements.txt $@
