# make run    builds the server and starts it on ./data, at http://127.0.0.1:8080
# make test   installs what the tests need and runs everything
# make lint   formatting and clippy, warnings are errors
# make bench  measures; prints one table

CARGO ?= cargo

.PHONY: run test lint bench

run:
	$(CARGO) run --release --locked -- serve --data-dir ./data

test:
	$(CARGO) test --workspace --all-targets --locked

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

bench:
	$(CARGO) build --release --locked
	$(CARGO) bench --locked --bench figures
