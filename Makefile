# make run           builds the dashboard and the server, and starts it on ./data, at http://127.0.0.1:8080
# make demo          the same with a plant in it to look at: live points, rules, webhooks; prints the log-in
# make test          installs what the tests need and runs everything
# make pandas        compares answers to random questions with those of pandas; `make test` does so too
# make schemathesis  sends thousands of generated requests to the server; `make test` does so too
# make python-package builds the wheel of clients/python, installs it into new environments and tests it; `make test` does so too
# make mcp           has the official client of the Model Context Protocol evaluate rules; `make test` does so too
# make agents        has Prometheus, collectd, Mosquitto, clients of InfluxDB and OpenTelemetry write for AGENTS_SECONDS (20) while the server is killed; `make test` does so too
# make power         cuts the power of a server under load, for POWER_SECONDS (25); root and loop devices; `make test` too
# make siege         six attacks on a server in 512 MiB; `make test` runs them too
#                    With RELEASE=1, power and siege are for the release instead of the optimised build of the tests.
# make storm         everything at once against a model, over fresh seeds, for STORM_SECONDS (600)
# make cluster       three nodes on a replicated database under load, on this machine: kill, freeze and cut off what you like
# make cluster-faults kills, freezes, cuts off and stops nodes of a cluster, CLUSTER_ROUNDS (100) times each; an hour
# make fuzz          FUZZ_RUNS (1000000) inputs through each fuzz target, or those in FUZZ_TARGETS
# make package       builds a release and writes a tarball and a Debian package of it to target/package
# make package-test  installs the Debian package into a scratch directory, starts and purges it; `make test` does so too
# make browser       the dashboard's tests, in a browser; `make test` runs them too
# make lint          formatting, clippy and rustdoc, warnings are errors
# make bench         measures; prints one table

CARGO ?= cargo
TARGET = $(or $(CARGO_TARGET_DIR),target)

.PHONY: run demo test pandas schemathesis python-package mcp agents power siege storm cluster cluster-faults fuzz package package-test browser lint bench

run:
	$(CARGO) run --release --locked -- serve --data-dir ./data

demo:
	$(CARGO) run --release --locked -- demo

test:
	tests/needs postgresql mosquitto prometheus
	$(CARGO) test --workspace --locked
	$(MAKE) pandas
	$(MAKE) schemathesis
	$(MAKE) python-package
	$(MAKE) mcp
	$(MAKE) agents
	$(MAKE) power
	$(MAKE) siege
	$(MAKE) package-test
	$(MAKE) browser

pandas:
	$(CARGO) test --workspace --test http --no-run --locked
	tests/needs python3
	python3 tests/pandas/run.py --binary $(TARGET)/debug/tidewatch --environment $(TARGET)/pandas

schemathesis:
	$(CARGO) test --workspace --test http --no-run --locked
	tests/needs python3
	python3 tests/schemathesis/run.py --binary $(TARGET)/debug/tidewatch --environment $(TARGET)/schemathesis

python-package:
	$(CARGO) test --workspace --test http --no-run --locked
	tests/needs python3
	python3 clients/python/run.py --binary $(TARGET)/debug/tidewatch --environment $(TARGET)/python-package

mcp:
	$(CARGO) test --workspace --test http --no-run --locked
	tests/needs python3
	python3 tests/mcp/run.py --binary $(TARGET)/debug/tidewatch --environment $(TARGET)/mcp-client

agents:
	$(CARGO) test --workspace --test http --no-run --locked
	tests/needs python3 prometheus prometheus-node-exporter collectd-core libmicrohttpd12 libprotobuf-c1 mosquitto mosquitto-clients
	python3 tests/agents/run.py --binary $(TARGET)/debug/tidewatch --environment $(TARGET)/agents

ifdef RELEASE
ATTACKED = $(TARGET)/release/tidewatch
BUILD_ATTACKED = $(CARGO) build --release --bin tidewatch --locked
else
ATTACKED = $(TARGET)/debug/tidewatch
BUILD_ATTACKED = $(CARGO) test --workspace --test http --no-run --locked
endif

power:
	$(BUILD_ATTACKED)
	tests/needs python3
	python3 tests/machine/power.py --binary $(ATTACKED)

siege:
	$(BUILD_ATTACKED)
	tests/needs python3 openssl
	python3 tests/machine/siege.py --binary $(ATTACKED)

storm:
	STORM_SECONDS=$(or $(STORM_SECONDS),600) $(CARGO) test --lib --locked -- checkpoint::tests::storm --nocapture

# A session of a test: keys come from the terminal, or the same letters from a pipe.
cluster:
	tests/needs postgresql
	CLUSTER_SESSION=1 $(CARGO) test --release --test cluster --locked --quiet -- live::a_session --exact --nocapture

# `make test` runs one round of each, and the faults of databases and object stores, which need no repetition.
cluster-faults:
	tests/needs postgresql
	CLUSTER_ROUNDS=$(or $(CLUSTER_ROUNDS),100) $(CARGO) test --test cluster --locked -- node_faults handover --nocapture

# What is kept of the inputs, fuzz/corpus, is what `make test` replays; what else is found gathers beside the binaries.
# An input that fails is written to fuzz/corpus as <kind>-<digest>.
FUZZ_TARGETS ?= $(basename $(notdir $(wildcard fuzz/binaries/*.rs)))
FUZZ = $(abspath $(TARGET))/fuzz

fuzz:
	cd fuzz && CARGO_TARGET_DIR=$(FUZZ) $(CARGO) build --release --locked
	set -e; for target in $(FUZZ_TARGETS); do \
		mkdir -p $(FUZZ)/corpus/$$target; \
		echo "$$target:"; \
		$(FUZZ)/release/$$target $(FUZZ)/corpus/$$target fuzz/corpus/$$target \
			-runs=$(or $(FUZZ_RUNS),1000000) -max_len=4096 -verbosity=0 -print_final_stats=1 \
			-artifact_prefix=fuzz/corpus/$$target/; \
	done

package:
	$(CARGO) build --release --locked --bin tidewatch
	packaging/build $(TARGET)/release/tidewatch $(TARGET)/package

package-test:
	$(CARGO) test --workspace --test http --no-run --locked
	tests/needs python3
	python3 tests/machine/package.py --binary $(TARGET)/debug/tidewatch

browser:
	$(CARGO) test --workspace --test http --no-run --locked
	dashboard/tests/run $(TARGET)/debug/tidewatch

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked

bench:
	tests/needs postgresql
	$(CARGO) build --release --locked
	$(CARGO) bench --locked --bench figures
