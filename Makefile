# What a developer runs now and then; .ci/run runs what must pass always.

FUZZTIME ?= 20s

.PHONY: fuzz shots survive

# Every fuzz target for FUZZTIME each. A finding stays in testdata/fuzz of its package.
fuzz:
	@for dir in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do \
		for name in $$(grep -h -o '^func Fuzz[A-Za-z0-9_]*' $$dir/*_test.go | sed 's/^func //'); do \
			echo "$$dir $$name"; \
			go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) $$dir || exit 1; \
		done; \
	done

# The README's pictures, from the demo's board in a headless Chromium. Look at them before you commit.
shots:
	ASTER_SHOTS=$(CURDIR)/docs go test ./cmd/aster/internal/demo -run '^TestShots$$' -count=1

# Processes killed at every instant and restarted under load, at full length, which takes long. ASTER_SEED repeats a run.
survive:
	ASTER_LONG=1 go test ./cmd/aster/internal/e2e -count=1 -timeout 3h -v
