# The two commands of the README are `make demo` and `make test`; both need Python 3.11, make and the package index only.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.ready
# Where the tests of `make unit` write, if it has 2 GiB free: they sync thousands of small files, and wait for the disk.
MEMORY := $(shell df --output=avail,target -k /dev/shm 2>/dev/null | awk 'NR == 2 && $$1 > 2097152 { print $$2 }')

# Where it is set, each of the thousand processes that the tests start compiles all modules anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo test lint type imports unit test-page rig-browser test-monitoring rig-monitoring test-tracing test-chaos chaos-of-this-host chaos-beside test-sim test-sim-mutations test-sim-soak test-vm test-vm-brief test-vm-kubelet test-compose test-compose-brief test-kubernetes test-kubernetes-all test-mixed-versions test-pages test-consumers test-wheel test-attacks test-attacks-scale test-cluster test-cluster-brief rigs rig-vm rig-compose rig-kubernetes rig-collector verify-nats audit image dist release manifests licenses bench bench-page bench-api-server bench-kubernetes bench-pod-start bench-images schemas settings reference docs clean

setup: $(STAMP)          ## make .venv from the pinned, hashed requirements; the command is .venv/bin/sublet

$(STAMP): requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Sublet needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	@$(BIN)/python deploy/install_packages.py requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(STAMP)           ## run the main job on this machine: real cgroups as root, the simulator otherwise
	$(BIN)/python -m sublet.demo

test: $(STAMP)           ## everything that needs no more than Python and make; the three that run alone on a CPU side by side
	$(MAKE) --no-print-directory --jobs=3 --output-sync=target lint type imports
	$(MAKE) --no-print-directory unit

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/deptry . --config requirements/deptry.toml

type: $(STAMP)
	$(BIN)/mypy

imports: $(STAMP)
	$(BIN)/lint-imports --no-logo 2>/dev/null || $(BIN)/lint-imports

unit: $(STAMP)           ## a file on each CPU, and one more; those that use this host's cgroups one after the other
	PYTEST_DEBUG_TEMPROOT=$(MEMORY) $(BIN)/python -m pytest -n auto --maxprocesses 8 --no-loadscope-reorder \
		-m "not slow and not vm and not compose and not kubernetes and not consumers and not attack and not wheel and not soak and not pages and not browser and not monitoring and not tracing and not mixed"

test-chaos: $(STAMP)     ## kill -9 of each service while the main job runs, 20 times each, and a storm of 100 kills; STORM_KILLS=1000 for a long one
	$(MAKE) --no-print-directory --jobs=2 --output-sync=target chaos-of-this-host chaos-beside

chaos-of-this-host: $(STAMP)
	$(BIN)/python -m pytest -m "slow and root" tests/e2e tests/integration

chaos-beside: $(STAMP)
	$(BIN)/python -m pytest -m "slow and not root" tests/e2e tests/integration

test-sim: $(STAMP)       ## SEEDS=1000 worlds of three nodes and two centrals in which everything fails, promises checked at each step; SEED=123 tells one
	$(BIN)/python tests/simulation $(if $(SEED),--seed $(SEED),--seeds $(or $(SEEDS),1000))

test-sim-mutations: $(STAMP)  ## the same with thirty-three deliberate bugs: how many worlds it takes to see each; BUG=lease for some of them
	$(BIN)/python tests/simulation --mutations $(if $(BUG),--only "$(BUG)") $(if $(SEEDS),--seeds $(SEEDS))

test-sim-soak: $(STAMP)  ## a virtual hour of the simulated machine, and ten real minutes with kill -9 of its parts and of NATS in turn; SOAK_S=3600 for longer
	$(BIN)/python -m pytest -m "slow or soak" -n0 tests/e2e/test_sim_soak.py

test-vm: rig-vm          ## the quick start on 48 CPUs of an emulated machine; as root on Debian 12, takes 16 min and 0.7 GB of cache
	$(BIN)/python -m pytest -m vm tests/vm --ignore tests/vm/test_node_vm.py

test-vm-brief: rig-vm    ## the same without what keeps 48 emulated CPUs busy: the quick start, 5 min, and over-commit, 8 min
	$(BIN)/python -m pytest -m vm tests/vm/test_disks_vm.py tests/vm/test_kubelet_vm.py tests/vm/test_offload_vm.py tests/vm/test_plans_vm.py

test-vm-kubelet: rig-vm rig-kubernetes  ## a whole node of 48 emulated CPUs: systemd, containerd, kubelet; as root on Debian 12
	$(BIN)/python -m pytest -m vm tests/vm/test_node_vm.py

test-compose: rig-compose  ## deploy/compose on a container engine of its own; as root on Debian 12, the first time takes 6 min more
	$(BIN)/python -m pytest -m compose tests/compose

test-compose-brief: rig-compose  ## the same without the images that are built twice, the package on a bare machine, and what profiles start
	$(BIN)/python -m pytest -m compose tests/compose/test_compose.py

test-kubernetes: rig-kubernetes  ## a real control plane and a real kubelet; as root on Debian 12, the first time takes 15 min more; KUBERNETES=v1.30.4 for an older one
	$(BIN)/python -m pytest -m kubernetes tests/kubernetes

test-kubernetes-all: rig-kubernetes  ## the same on each supported version, and docs/kubernetes-versions.md from it; 25 min a version, and 10 more the first time; VERSIONS="v1.30.4 v1.33.4" STORIES=tests/kubernetes/test_crds.py for some of it
	PYTHONPATH=.:tests:tests/kubernetes:tests/compose:tests/vm $(BIN)/python -m every_version $(STORIES) $(if $(VERSIONS),--versions $(VERSIONS))

test-mixed-versions: rig-kubernetes  ## this version and the next one in one cluster of three nodes, an upgrade by Helm and the way back; as root on Debian 12, 9 min
	$(BIN)/python -m pytest -m mixed tests/kubernetes

test-pages: rig-kubernetes  ## the first success of each page on the cluster's half, typed as printed on one installation; 8 min
	$(BIN)/python -m pytest -m pages tests/kubernetes

test-attacks: rig-kubernetes  ## what tenants, nodes, logins, local users, operators and faults may try, on real parts; as root on Debian 12
	$(ATTACKS_WITHOUT_CLUSTER)
	$(BIN)/python -m pytest -m kubernetes tests/attacks

test-attacks-scale: $(STAMP)  ## a million events of one hostile node of three, 20 000 heartbeats a second for a minute; 10 min; ATTACK_EVENTS=100000 for fewer
	PYTEST_DEBUG_TEMPROOT=$(MEMORY) ATTACK_EVENTS=$(or $(ATTACK_EVENTS),1000000) ATTACK_HEARTBEATS_S=$(or $(ATTACK_HEARTBEATS_S),60) \
		$(BIN)/python -m pytest -n0 -s -m attack tests/attacks/scale

test-cluster: rig-kubernetes  ## both of the above on one cluster: five minutes less than one after the other
	$(ATTACKS_WITHOUT_CLUSTER)
	$(BIN)/python -m pytest -m kubernetes --durations=40 --durations-min=5 tests/kubernetes tests/attacks

test-cluster-brief: rig-kubernetes  ## the same without eleven long stories: three nodes, and parts that are off at first or used once (metrics for others, migration, kustomize, pause, over-commit and such)
	$(ATTACKS_WITHOUT_CLUSTER)
	$(BIN)/python -m pytest -m kubernetes --durations=40 --durations-min=5 tests/kubernetes tests/attacks $(NOT_BRIEF:%=--ignore tests/kubernetes/test_%.py)

NOT_BRIEF := bad_values bench_on_kubelet custom_metrics_story followed_slo_config gate_story kustomize many_nodes migrate \
	observe_first overcommit_story pause_story

# As in `make unit`: several files at once; those that use this host's cgroups one after the other. The logins' tests stand
# on three servers that vote, and are by themselves: a voter that waits for a CPU would be taken for lost.
WITHOUT_CLUSTER = "attack and not kubernetes"
ATTACKS_WITHOUT_CLUSTER = $(BIN)/python -m pytest -n auto --maxprocesses 8 --no-loadscope-reorder -m $(WITHOUT_CLUSTER) \
		--ignore tests/attacks/login tests/attacks && $(BIN)/python -m pytest -n0 -m $(WITHOUT_CLUSTER) tests/attacks/login

rigs: rig-vm rig-compose rig-kubernetes rig-collector  ## build what the tests on real parts need and keep it, without a test

rig-vm: $(STAMP)
	PYTHONPATH=tests:tests/vm $(BIN)/python -m rig

rig-compose: $(STAMP)
	PYTHONPATH=tests:tests/compose:tests/vm $(BIN)/python -m compose_rig

rig-kubernetes: $(STAMP)
	PYTHONPATH=tests:tests/kubernetes:tests/compose:tests/vm $(BIN)/python -m kube_rig

test-page: rig-browser  ## the live page in a real browser; as root on Debian 12 the first time installs Chromium
	$(BIN)/python -m pytest -m browser -n0 tests/browser

rig-browser: $(STAMP)
	@test -x /usr/bin/chromedriver || { apt-get update -qq && \
		apt-get -o DPkg::Lock::Timeout=600 install -y -qq --no-install-recommends chromium chromium-driver >/dev/null; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/browser.txt

test-monitoring: rig-monitoring  ## alerts by promtool, every query of rules and boards by a real Prometheus; as root on Debian 12 the first time installs it
	$(BIN)/python -m pytest -m monitoring -n0 tests/monitoring

rig-monitoring: $(STAMP)
	@command -v promtool >/dev/null || { apt-get update -qq && \
		apt-get -o DPkg::Lock::Timeout=600 install -y -qq --no-install-recommends prometheus >/dev/null; }

test-tracing: rig-collector  ## one trace through the processes of a node, received by a real OpenTelemetry Collector; needs Go, the first time 2 min more
	$(BIN)/python -m pytest -m tracing -n0 tests/tracing

rig-collector: $(STAMP)
	PYTHONPATH=tests:tests/tracing:tests/vm $(BIN)/python -m collector_rig

test-consumers: $(STAMP) ## build and run the example subscribers, each in its language, through restarts; without Go, Node or Java that one is skipped
	$(BIN)/python -m pytest -m consumers tests/consumers

test-wheel: $(STAMP)     ## install the wheel into clean environments, with and without its extras, and run every command there; real shells complete them; 3 min
	@{ command -v zsh && command -v fish; } >/dev/null || [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null || { apt-get update -qq && \
		apt-get -o DPkg::Lock::Timeout=600 install -y -qq --no-install-recommends zsh fish >/dev/null; }
	$(BIN)/python -m pytest -m wheel tests/wheel

verify-nats: $(STAMP)    ## build the NATS server of the wheel anew from its source and compare byte by byte; needs Go, takes 2 min
	PYTHONPATH=. $(BIN)/python deploy/verify_nats_server.py

SUPPLY := out/supply

$(SUPPLY)/.ready: requirements/supply.txt
	$(PYTHON) -m venv $(SUPPLY)
	$(SUPPLY)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/supply.txt
	@touch $@

audit: $(STAMP) $(SUPPLY)/.ready  ## look every pinned package up among the known vulnerabilities; 1: some are known, 2: not done, since neither the index nor a list of these days answers
	PYTHONPATH=. $(BIN)/python -m deploy.audit --pip-audit $(SUPPLY)/bin/pip-audit

HELM ?= $(lastword helm $(wildcard $(HOME)/.cache/sublet-kubernetes/programs/helm-*))

dist: $(STAMP)           ## wheel, source distribution, manual pages, chart, Debian package and images into dist, with checksums; PARTS="python debian" for some
	PYTHONPATH=. HELM=$(HELM) $(BIN)/python -m deploy.artifacts $(PARTS)

licenses: $(STAMP)       ## write docs/licenses.md anew from the metadata of what requirements/*.txt pin
	PYTHONPATH=. $(BIN)/python -m deploy.artifacts.licenses

image: $(STAMP)          ## build the images sublet, sublet-node and sublet-central with their bills of materials, into the engine and into dist
	@$(MAKE) --no-print-directory dist PARTS=images

release: $(STAMP)        ## from a clean checkout: VERSION=1.2.3 into code and changelog, checks, commit, tag, and make dist; DRY=1 only says what it would do
	PYTHONPATH=. HELM=$(HELM) $(BIN)/python -m deploy.release $(if $(DRY),--dry-run) $(or $(VERSION),"")

manifests: $(STAMP)      ## write the kustomize bases of deploy/k8s anew from the chart; needs helm
	HELM=$(HELM) $(BIN)/python deploy/k8s/render.py

bench: $(STAMP)          ## measure reaction times and footprint; prints a table; PARTS="reaction footprint" for some of it
	$(BIN)/python -m bench $(PARTS)

bench-page: rig-browser  ## how many frames a second the live page has while it is scrolled, with 2000 and 10 000 nodes, in Chromium; NODES=5000 for another number
	PYTHONPATH=.:tests:tests/vm:tests/browser $(BIN)/python -m bench.cluster.live_page $(NODES)

bench-api-server: rig-kubernetes  ## central over 3000 nodes that a real API server and etcd know: its writes, verdicts, cost; as root on Debian 12, 6 min; NODES=1000 for another number
	PYTHONPATH=.:tests:tests/kubernetes:tests/compose:tests/vm $(BIN)/python -m bench.kubernetes.fleet $(if $(NODES),--nodes $(NODES))

bench-kubernetes: rig-kubernetes  ## what the agent costs on a real kubelet, by cgroup, and how fast it is; as root on Debian 12, 40 min; PARTS="rest work" for some of it
	PYTHONPATH=.:tests:tests/kubernetes:tests/compose:tests/vm $(BIN)/python -m bench.kubernetes $(PARTS)

bench-pod-start: rig-kubernetes  ## how long many pods at once take to be Ready on a busy node, without and with Sublet, as a ratio; 10 min
	PYTHONPATH=.:tests:tests/kubernetes:tests/compose:tests/vm $(BIN)/python -m bench.kubernetes.starts

bench-images: rig-compose  ## how large each image is, and how long it takes to be of use; as root on Debian 12
	PYTHONPATH=.:tests:tests/compose:tests/vm $(BIN)/python -m bench.artifacts.images

schemas: $(STAMP)        ## write docs/schemas and the lines of deploy that name channels or services anew
	$(BIN)/python -m shared.contracts.bus.schemas docs/schemas
	$(BIN)/python -m shared.contracts.deploy
	PYTHONPATH=. $(BIN)/python deploy/k8s/values_schema.py
	$(KEEP_WHAT_IS_WRITTEN)

settings: $(STAMP)       ## write docs/settings.md and docs/metrics.md anew from the code
	$(BIN)/python -m sublet.settings_page docs/settings.md
	$(BIN)/python -m sublet.settings_page.metrics docs/metrics.md
	$(KEEP_WHAT_IS_WRITTEN)

reference: $(STAMP)      ## write docs/reference anew: commands, messages, kinds of objects, rights
	$(BIN)/python docs/site/reference.py docs/reference

SITE := out/site-tools

$(SITE)/.ready: requirements/docs.txt
	$(PYTHON) -m venv $(SITE)
	$(SITE)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/docs.txt
	@touch $@

docs: $(STAMP) $(SITE)/.ready  ## the pages as a site in out/site, every link and heading checked; what was done with each code block
	$(BIN)/python docs/site/blocks.py
	$(BIN)/python docs/site/build_site.py out/docs
	NO_COLOR=1 $(SITE)/bin/zensical build --strict --config-file out/docs/zensical.toml
	rm -rf out/site && mv out/docs/site out/site
	@echo "out/site/index.html; with search: $(PYTHON) -m http.server --directory out/site --bind 127.0.0.1 8000"

# What this version writes, for those that come after it (tests/fixtures/released); a released version's stays as it is.
KEEP_WHAT_IS_WRITTEN = PYTHONPATH=.:tests/unit/released:tests/unit/contracts $(BIN)/python -m released_folders

clean:
	rm -rf $(VENV) out dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
