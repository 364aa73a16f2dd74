# A fresh machine needs only two commands: `make run` and `make test`.

CARGO ?= cargo
PREFIX ?= $(HOME)/.local

.PHONY: build run test test-agents check chaos chaos-short chaos-build bench bench-doc accuracy accuracy-doc accuracy-live accuracy-live-doc fuzz fmt docs install dist clean

build:
	$(CARGO) build --locked --release -p agency
	$(CARGO) build --locked --profile keeper -p agency-keeper
	install -m 0755 target/keeper/agency-keeper target/release/agency-keeper

# On a terminal: Agency in a scratch repository, attached to a shell agent.
# Without a terminal: the same steps as a printed story.
run: build
	./scripts/run

test:
	./scripts/test

# Real agents (Claude Code, Codex, opencode, Gemini CLI, Qwen Code, Copilot), installed below target/agents, against a fake model and without a network. TESTS selects tests.
test-agents:
	./scripts/test-agents $(TESTS)

# Format, lints, licences, spelling, words, scripts; `make test` includes these checks.
check:
	./scripts/check

# Runs Agency under random faults and checks every line, message, commit and process: make chaos CHAOS="--seed 7 --minutes 20".
# docs/chaos.md explains the output.
chaos: chaos-build
	./target/debug/agency-chaos $(CHAOS)

# Three minutes of it, for `make test`: a fixed seed and a random one, which it prints.
chaos-short: chaos-build
	./target/debug/agency-chaos --seed 20 --minutes 1.5
	./target/debug/agency-chaos --minutes 1.5

chaos-build:
	$(CARGO) build --locked --profile keeper -p agency-keeper
	$(CARGO) build --locked -p agency -p agency-testkit -p agency-chaos --bins

# Measures Agency beside the installed peers; installs nothing. BENCH passes options: make bench BENCH="--only echo".
bench: build
	$(CARGO) build --locked --release -p agency-bench
	./target/release/agency-bench $(BENCH)

# The same, and writes the figures into docs/performance.md.
bench-doc: build
	$(CARGO) build --locked --release -p agency-bench
	./target/release/agency-bench --page docs/performance.md $(BENCH)

# Compares detected states with the true ones, in recordings. ACCURACY passes options: make accuracy ACCURACY=--verbose.
accuracy:
	$(CARGO) build --locked -p agency -p agency-bench --bins
	./target/debug/accuracy $(ACCURACY)

# The same, and writes the figures into docs/accuracy.md.
accuracy-doc:
	$(CARGO) build --locked -p agency -p agency-bench --bins
	./target/debug/accuracy --page docs/accuracy.md $(ACCURACY)

# Plays programs that Agency has no rules for, under a real daemon, and judges the states that it reports. Takes an hour and needs
# the package registries, so `make test` does not run it. HALVES chooses `unseen` (to work with), `held-out`, or both.
HALVES ?= unseen,held-out
accuracy-live:
	$(CARGO) build --locked --profile keeper -p agency-keeper
	$(CARGO) build --locked -p agency -p agency-bench --bins
	./tests/agents/install-unseen
	-./scripts/record-unseen --live --half $(HALVES)
	./target/debug/accuracy --half $(HALVES) --live target/accuracy-live $(ACCURACY)

# Writes the figures of the last `make accuracy-live` into docs/accuracy.md.
accuracy-live-doc:
	$(CARGO) build --locked -p agency -p agency-bench --bins
	./target/debug/accuracy --half unseen,held-out --live target/accuracy-live --page docs/accuracy.md $(ACCURACY)

# Needs cargo-fuzz. RUSTC_BOOTSTRAP lets a stable compiler accept the fuzzer's flags.
FUZZ_SECONDS ?= 120
FUZZ_SANITIZER ?= address
fuzz:
	for target in screen restore filter keys stream_json acp_session acp_router; do \
		RUSTC_BOOTSTRAP=1 $(CARGO) fuzz run --fuzz-dir fuzz --sanitizer $(FUZZ_SANITIZER) $$target -- \
			-max_total_time=$(FUZZ_SECONDS) -max_len=4096 || exit 1; \
	done

fmt:
	$(CARGO) fmt --all

# Writes the reference pages from the definitions in the code.
docs:
	UPDATE_DOCS=1 $(CARGO) test --locked -p agency --bin agency reference

install: build
	install -d $(DESTDIR)$(PREFIX)/bin
	install -m 0755 target/release/agency target/keeper/agency-keeper $(DESTDIR)$(PREFIX)/bin

# Static binaries, manual pages, completions and a checksum below target/dist. DIST_TARGET chooses the target.
dist:
	./scripts/dist

clean:
	$(CARGO) clean
