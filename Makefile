# SPDX-License-Identifier: GPL-2.0-only
# Commands only; the work is in scripts/. `make help` lists them.

STACK ?= v6.12
KERNEL ?= patched
SCENARIO ?= store
export TREE ACCEL TESTS TOPIC MINUTES RUNS KERNEL_IMAGE

# Kernel builds have a make of their own: this one's flags (-j, -k …) are not for them.
unexport MAKEFLAGS MAKELEVEL MFLAGS
.NOTPARALLEL:
.DEFAULT_GOAL := help
S := scripts/

.PHONY: help
help: ## this list
	@awk -F':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile
	@echo "Settings: STACK=$(STACK) ($$(cd series && echo *)), TREE=/path/to/linux (your own git tree), ACCEL=kvm|tcg|icount"

.PHONY: demo check series kernel kunit kselftest bench reuse stress lint mail boot refresh
demo: ## from nothing: tools, source, both kernels, selftests, before/after table
	@$(S)demo $(STACK)
check: ## every test of every stack; ends with the counts
	@$(S)check
series: ## apply the stack on a git branch, one mailbox a topic
	@$(S)series $(STACK)
kernel: ## build one kernel (KERNEL=base|patched CONFIG=bench|test|debug), print its path
	@$(S)build-kernel $(STACK) $(KERNEL) $(or $(CONFIG),test)
kunit: ## KUnit suites in the patched test kernel: KTAP and a verdict
	@$(S)run-kunit $(STACK)
kselftest: ## selftests in the patched test kernel (TESTS="name name"): KTAP and a verdict
	@$(S)run-kselftest $(STACK)
bench: ## one scenario (SCENARIO=store) over its kernels: table, JSON, SVG, report
	@$(S)run-bench $(STACK) $(SCENARIO)
reuse: ## setting up zstd and lz4 anew for each page, against keeping them (FILES="…"): wall time in user space
	@$(S)run-reuse $(FILES)
stress: ## not there yet: debug kernel, fault injection, integrity checks
	@echo "make stress: not there yet" >&2; exit 1
lint: ## checkpatch, patches apply, exports match, shell and Python checks
	@$(S)lint $(STACK)
mail: ## b4 branch and mails of one topic (TOPIC=name VERSION=2), checked, never sent
	@$(S)mail $(STACK) "$(TOPIC)" $(VERSION)
boot: ## a shell in the guest (KERNEL=base|patched CONFIG=test)
	@$(S)boot-shell $(STACK) $(KERNEL) $(or $(CONFIG),test)
refresh: ## export the worktree's commits to patches/, series/, kselftests/, kunit/
	@$(S)refresh-series $(STACK)
