# What a developer runs now and then; .ci/run runs what must pass always.

FUZZ ?= 1000000x
FUZZOF ?= .

.PHONY: chaos day five fuzz mutations shots survive

# Every fuzz target, one at a time on one core, FUZZ executions each (or a time: make fuzz FUZZ=20s), and how many those
# were; FUZZOF=protocol takes one folder's alone. A finding stays in testdata/fuzz of its package. With a time, a busy
# machine may end a run with "context deadline exceeded", which is go test's own end of time and no finding.
fuzz:
	@for dir in $$(grep -rl --include='*_test.go' '^func Fuzz' $(FUZZOF) | xargs -n1 dirname | sort -u); do \
		for name in $$(grep -h -o '^func Fuzz[A-Za-z0-9_]*' $$dir/*_test.go | sed 's/^func //'); do \
			out=$$(go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZ) -fuzzminimizetime 10x -parallel 1 ./$$dir 2>&1); rc=$$?; \
			echo "$$dir $$name: $$(echo "$$out" | grep -o 'execs: [0-9]*' | tail -n 1)"; \
			[ $$rc -eq 0 ] && continue; \
			echo "$$out"; \
			case "$$out" in *"Failing input"*) exit 1;; *"context deadline exceeded"*) ;; *) exit 1;; esac; \
		done; \
	done

# Plants known mistakes in a copy, one at a time, and writes which seed of the simulation finds each: node/sim/MUTATIONS.md.
mutations:
	ASTER_MUTATIONS=1 go test ./node/sim -run '^TestMutations$$' -count=1 -timeout 1h -v

# Five nodes in network namespaces of the test's own, 20,000 messages, and everything done to them for four minutes. Needs
# root, ip, nft and nsenter; builds nodes with clocks of their own first, which takes as long. ASTER_SEED repeats a plan.
chaos:
	ASTER_LONG=1 go test ./cmd/aster/internal/e2e -run '^(TestChaos|TestSkewedClock|TestLedgerSeesEachKindOfFault)$$' -count=1 -timeout 30m -v

# A simulated day of three nodes at 50 messages a second, 4.3 million of them, with what it holds in memory hour by hour. About
# a quarter of an hour of one core; it takes only time that nobody else wants.
day:
	ASTER_LONG=1 nice -n 19 go test ./node/sim -run '^TestADayOfMessagesLeavesMemoryFlat$$' -count=1 -timeout 6h -v

# Every view of a board at work, 1440 and 390 px wide, light and dark, English and Korean, into DIR (.ci/cache/shots); and the
# eight pictures in docs/, two of them from the demo's board. Look at all of them before you commit.
shots:
	@mkdir -p $(or $(DIR),$(CURDIR)/.ci/cache/shots)
	ASTER_SHOTS=$(or $(DIR),$(CURDIR)/.ci/cache/shots) ASTER_DOCS=$(CURDIR)/docs go test ./board/web -run '^TestShots$$' -count=1
	ASTER_SHOTS=$(CURDIR)/docs go test ./cmd/aster/internal/demo -run '^TestShots$$' -count=1

# Five meshes that are as unlike as they may be, for eyes that have not seen the board: ask them what TESTING.md asks.
five:
	@mkdir -p $(or $(DIR),$(CURDIR)/.ci/cache)
	ASTER_SHOTS=$(or $(DIR),$(CURDIR)/.ci/cache) go test ./board/web -run '^TestFiveAnswersAreSeenAtOnce$$' -count=1

# Processes killed at every instant and restarted under load, at full length, which takes long. ASTER_SEED repeats a run.
survive:
	ASTER_LONG=1 go test ./cmd/aster/internal/e2e -count=1 -timeout 3h -v
	ASTER_LONG=1 go test ./node/sim -run '^TestSeeds$$' -count=1 -timeout 6h -v
