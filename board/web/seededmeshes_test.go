package web

import (
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

const (
	second = time.Second
	minute = time.Minute
)

// fiveMeshes are as unlike as five meshes may be. Each is made when it is wanted, as some of its truth is counted from then.
var fiveMeshes = []func(now time.Time) seeded{quietMesh, approvalMesh, blockedMesh, cutMesh, busyMesh}

// quietMesh: everything is done, everybody is idle.
func quietMesh(now time.Time) seeded {
	s := newSeed(now)
	s.node("atelier", protocol.RoleLocal, 0, 0)
	s.node("nas", protocol.RoleLocal, 2100*time.Microsecond, 0)
	s.main("claude-blog", "atelier", 3)
	s.agent("claude-blog", "atelier", protocol.StateIdle, 41*minute, "rewake", "", 0)
	s.agent("codex-blog", "atelier", protocol.StateIdle, 52*minute, "rewake", "", 0)
	s.agent("nas", "nas", protocol.StateIdle, 44*minute, "its runner", "", 0)
	s.task("Compress the pictures of the last ten posts", "claude-blog", "nas", "nas", api.TaskDone, 44*minute, 212*second, "Ten posts, 41 pictures, 38 % smaller.", &api.Diff{Files: 41, Added: 41, Removed: 41})
	s.task("Fix the dead links on the about page", "claude-blog", "codex-blog", "atelier", api.TaskDone, 58*minute, 96*second, "Three links mended.", &api.Diff{Files: 1, Added: 3, Removed: 3})
	s.task("Write alternative texts for the October pictures", "claude-blog", "codex-blog", "atelier", api.TaskDone, 3*time.Hour, 388*second, "All have one now.", &api.Diff{Files: 9, Added: 31, Removed: 2})
	s.say(50*minute, "", "claude-blog", protocol.UserPrompt, "Make the October posts lighter, then stop.", 4)
	s.say(48*minute, "claude-blog", "nas", protocol.Delegate, "Compress the pictures of the last ten posts", 4)
	s.say(44*minute, "nas", "claude-blog", protocol.WorkerReport, "Ten posts, 41 pictures, 38 % smaller.", 4)
	s.say(41*minute, "claude-blog", "", protocol.Intent("Report"), "The October posts are lighter: 38 % in all. Nothing is left to do.", 2)
	return s.mesh("quiet", 8_341, [5][]answered{
		{{"#needs", "Nothing needs you."}},
		{{"#agents", "claude-blog"}, {"#agents", "codex-blog"}, {"#agents", "idle 41 min"}, {"#agents", "idle 52 min"}, {"#agents", "idle 44 min"}},
		{{"#work", "Nothing is blocked."}},
		{{"#work", "Nothing runs."}, {"#work", "44 min ago"}, {"#messages", "last 41 min ago"}},
		{{"#top", "live"}, {"#top", "claude-blog"}, {"#foot", "1 of 1 other nodes linked"}, {"#foot", "8,341 records, 0 behind"}, {"#foot", "clocks agree"}, {"#foot", "disk 412 MiB of 8 GiB"}},
	})
}

// approvalMesh: work runs, and one agent may not go on before its person says so.
func approvalMesh(now time.Time) seeded {
	s := newSeed(now)
	s.node("devbox", protocol.RoleLocal, 0, 0)
	s.node("mac-mini", protocol.RoleLocal, 1800*time.Microsecond, 0)
	s.node("build-1", protocol.RoleUpstream, 12400*time.Microsecond, 0)
	s.main("claude-shop", "devbox", 1)
	s.agent("claude-shop", "devbox", protocol.StateNeedsHuman, 95*second, "rewake", "", 0)
	s.agent("codex-shop", "devbox", protocol.StateWorking, 34*second, "rewake", "reads tax/table.go", 0)
	s.agent("mac-mini", "mac-mini", protocol.StateWorking, 128*second, "its runner", "runs go test ./cart", 0)
	s.agent("build-1", "build-1", protocol.StateIdle, 31*minute, "its runner", "", 0)
	s.task("Make ./cart pass", "claude-shop", "mac-mini", "mac-mini", api.TaskRunning, 128*second, 0, "--- RUN TestEmptyCart", nil)
	s.task("Check the tax table of 2026 against the law", "claude-shop", "codex-shop", "devbox", api.TaskRunning, 34*second, 0, "reads tax/table.go", nil)
	s.task("Add a test for an empty cart", "claude-shop", "mac-mini", "mac-mini", api.TaskDone, 9*minute, 42*second, "All tests pass.", &api.Diff{Files: 2, Added: 14, Removed: 1})
	s.ask(api.AskApproval, "Run `rm -rf build/ dist/` in ~/shop?", "claude-shop", "devbox", "devbox", 95*second, 239*second, "", nil, api.AskOption{Label: "Allow once"}, api.AskOption{Label: "Deny"})
	s.say(10*minute, "claude-shop", "mac-mini", protocol.Delegate, "Add a test for an empty cart", 4)
	s.say(9*minute, "mac-mini", "claude-shop", protocol.WorkerReport, "All tests pass.", 4)
	s.say(128*second, "claude-shop", "mac-mini", protocol.Delegate, "Make ./cart pass", 4)
	s.say(34*second, "claude-shop", "codex-shop", protocol.Delegate, "Check the tax table of 2026 against the law", 4)
	s.say(12*second, "mac-mini", "claude-shop", protocol.WorkerReport, "2 of 3 tests pass, TestEmptyCart is left", 2)
	return s.mesh("approval", 50_212, [5][]answered{
		{{"#needs", "Run `rm -rf build/ dist/` in ~/shop?"}, {"#needs", "denied in 3:"}, {"#needs", "Allow once"}, {"#needs", "Deny"}},
		{{"#agents", "claude-shop"}, {"#agents", "needs a person"}, {"#agents", "runs go test ./cart"}, {"#agents", "reads tax/table.go"}, {"#agents", "idle 31 min"}},
		{{"#work", "Nothing is blocked."}},
		{{"#work", "Make ./cart pass"}, {"#work", "TestEmptyCart"}, {"#work", "2 min"}, {"#messages", "2 of 3 tests pass, TestEmptyCart is left"}, {"#messages", " s ago"}},
		{{"#top", "live"}, {"#foot", "2 of 2 other nodes linked"}, {"#foot", "50,212 records, 0 behind"}, {"#foot", "clocks agree"}},
	})
}

// blockedMesh: one task waits for another, which runs; nobody has to decide anything.
func blockedMesh(now time.Time) seeded {
	s := newSeed(now)
	s.node("lab", protocol.RoleLocal, 0, 0)
	s.node("gpu-2", protocol.RoleUpstream, 700*time.Microsecond, 0)
	s.main("claude-lab", "lab", 5)
	s.agent("claude-lab", "lab", protocol.StateWorking, 50*second, "rewake", "reads the logs of run 41", 0)
	s.agent("gemini-lab", "lab", protocol.StateIdle, 6*minute, "rewake", "", 0)
	s.agent("gpu-2", "gpu-2", protocol.StateWorking, 17*minute, "its runner", "runs make train", 0)
	trains := s.task("Train with the new tokenizer", "claude-lab", "gpu-2", "gpu-2", api.TaskRunning, 17*minute, 0, "epoch 3 of 8, loss 1.92", nil)
	s.task("Compare both tokenizers on the test set", "claude-lab", "gemini-lab", "lab", api.TaskBlocked, 6*minute, 20*second, "Waits for "+trains.Short+" on gpu-2: there is no checkpoint to compare yet.", nil)
	s.task("Write down what the old tokenizer reached", "claude-lab", "gemini-lab", "lab", api.TaskDone, 12*minute, 71*second, "In notes/baseline.md.", &api.Diff{Files: 1, Added: 40, Removed: 0})
	s.say(17*minute, "claude-lab", "gpu-2", protocol.Delegate, "Train with the new tokenizer", 4)
	s.say(6*minute, "gemini-lab", "claude-lab", protocol.WorkerReport, "Blocked: there is no checkpoint to compare yet.", 4)
	s.say(9*second, "gpu-2", "claude-lab", protocol.WorkerReport, "epoch 3 of 8, loss 1.92", 3)
	return s.mesh("blocked", 12_007, [5][]answered{
		{{"#needs", "Nothing needs you."}},
		{{"#agents", "claude-lab"}, {"#agents", "reads the logs of run 41"}, {"#agents", "idle 6 min"}, {"#agents", "runs make train"}},
		{{"#work", "Compare both tokenizers on the test set"}, {"#work", "Waits for " + trains.Short + " on gpu-2: there is no checkpoint to compare yet."}, {"#work", "6 min ago"}},
		{{"#work", "Train with the new tokenizer"}, {"#work", "epoch 3 of 8, loss 1.92"}, {"#work", "17 min"}, {"#messages", " s ago"}},
		{{"#top", "live"}, {"#top", "claude-lab"}, {"#foot", "1 of 1 other nodes linked"}, {"#foot", "0 behind"}},
	})
}

// cutMesh: this node is alone since four minutes; there is no main, and what is known of the others is as old.
func cutMesh(now time.Time) seeded {
	s := newSeed(now)
	s.node("train-laptop", protocol.RoleLocal, 0, 0)
	s.node("office", protocol.RoleLocal, 0, 4*minute)
	s.node("ci", protocol.RoleLocal, 0, 4*minute)
	s.main("claude-office", "office", 7)
	m := &s.f.snap.Status.Main
	m.Lost, m.Voters, m.Reach = s.ago(4*minute), []string{"train-laptop", "office", "ci"}, 1
	s.f.snap.Status.Agent = "claude-travel"
	s.agent("claude-travel", "train-laptop", protocol.StateWorking, 20*second, "rewake", "edits docs/intro.md", 0)
	s.agent("claude-office", "office", protocol.StateWorking, 9*minute, "rewake", "reviews the release", 1)
	s.agent("ci", "ci", protocol.StateIdle, 15*minute, "its runner", "", 0)
	s.task("Check all examples of the handbook", "claude-travel", "ci", "ci", api.TaskQueued, 2*minute, 0, "", nil)
	s.task("Rewrite the introduction", "claude-office", "claude-travel", "train-laptop", api.TaskRunning, 8*minute, 0, "edits docs/intro.md", nil)
	s.say(8*minute, "claude-office", "claude-travel", protocol.Delegate, "Rewrite the introduction", 4)
	s.say(2*minute, "claude-travel", "ci", protocol.Delegate, "Check all examples of the handbook", 1)
	s.say(9*second, "claude-travel", "claude-office", protocol.WorkerReport, "The first half is written", 1)
	return s.mesh("cut", 3_120, [5][]answered{
		{{"#needs", "Nothing needs you."}, {"#notices", "1 of 3 here: nobody can be elected. Mail and tasks flow, claims and plans wait. To go on without the others: aster main take --force"}},
		{{"#agents", "claude-travel"}, {"#agents", "edits docs/intro.md"}, {"#agents", "as of 4 min ago"}},
		{{"#work", "Nothing is blocked."}, {"#work", "Check all examples of the handbook"}, {"#work", "queued"}},
		{{"#work", "Rewrite the introduction"}, {"#work", "8 min"}, {"#messages", " s ago"}},
		{{"#top", "no main"}, {"#notices", "No main since"}, {"#foot", "0 of 2 other nodes linked"}, {"#agents", "not linked"}, {"#top", "live"}},
	})
}

// busyMesh: much of everything, and among it one agent that hears nothing.
func busyMesh(now time.Time) seeded {
	s := newSeed(now)
	s.node("hub-1", protocol.RoleLocal, 0, 0)
	for _, n := range []struct {
		name string
		role protocol.Role
		rtt  time.Duration
	}{{"hub-2", protocol.RoleLocal, 900 * time.Microsecond}, {"build-7", protocol.RoleUpstream, 4200 * time.Microsecond}, {"partner", protocol.RoleCollab, 38 * time.Millisecond}} {
		s.node(n.name, n.role, n.rtt, 0)
	}
	s.main("lead", "hub-2", 12)
	s.f.snap.Status.Behind = 340
	s.f.snap.Peers[2].SkewMillis = -190_000
	for i, a := range []struct {
		name, node, wakes, doing string
		state                    protocol.AgentState
		unread                   int
	}{
		{"api", "hub-1", "rewake", "runs go test ./api", protocol.StateWorking, 0}, {"docs", "hub-1", "rewake", "", protocol.StateIdle, 0},
		{"search", "hub-1", "rewake", "runs the benchmark", protocol.StateWorking, 2}, {"web", "hub-1", "nothing: its session is closed", "", protocol.StateDeaf, 14},
		{"lead", "hub-2", "rewake", "plans release 3.1", protocol.StateWorking, 1}, {"mobile", "hub-2", "rewake", "edits login.kt", protocol.StateWorking, 0},
		{"data", "hub-2", "rewake", "", protocol.StateNeedsHuman, 3}, {"build-7", "build-7", "its runner", "runs make release", protocol.StateWorking, 0},
		{"partner-ci", "partner", "", "", protocol.StateUnknown, 0},
	} {
		s.agent(a.name, a.node, a.state, time.Duration(i+2)*minute, a.wakes, a.doing, a.unread)
	}
	index := s.task("Index the old tickets, too", "lead", "search", "hub-1", api.TaskBlocked, 7*minute, 4*minute, "Should closed tickets older than two years be found?", nil)
	s.task("Ship the web client of 3.1", "lead", "web", "hub-1", api.TaskFailed, 3*minute, 11*minute, "npm run build: out of memory (exit 134)", nil)
	s.task("Make ./api pass with the new limits", "lead", "api", "hub-1", api.TaskRunning, 2*minute, 0, "31 of 40 tests pass", nil)
	s.task("Measure search with a million tickets", "lead", "search", "hub-1", api.TaskRunning, 4*minute, 0, "600,000 of 1,000,000", nil)
	s.task("Log in with a passkey", "lead", "mobile", "hub-2", api.TaskRunning, 6*minute, 0, "edits login.kt", nil)
	s.task("Build 3.1 for four systems", "lead", "build-7", "build-7", api.TaskRunning, 9*minute, 0, "3 of 4 built", nil)
	s.task("Describe the new limits", "lead", "docs", "hub-1", api.TaskDelivered, 40*second, 0, "", nil)
	for i := range 8 {
		s.task([]string{"Update what CI installs", "Remove the old login"}[i%2], "lead", "api", "hub-1", api.TaskDone, time.Duration(15+9*i)*minute, 77*second, "All tests pass.", &api.Diff{Files: 3, Added: 20 + i, Removed: 4})
	}
	s.ask(api.AskApproval, "Push tag v3.1.0-rc1 to origin?", "build-7", "build-7", "hub-1", 25*second, 119*second, "", nil, api.AskOption{Label: "Push it"}, api.AskOption{Label: "Deny"})
	s.ask(api.AskChoice, "Which limit for anonymous requests?", "api", "hub-1", "hub-1", 8*minute, 22*minute, "60 a minute", nil, api.AskOption{Label: "60 a minute", Detail: "as in 3.0"}, api.AskOption{Label: "20 a minute", Detail: "no client needs more"})
	s.ask(api.AskBlocked, index.Summary, "search", "hub-1", "hub-1", 7*minute, 0, "", &index)
	for i := range 5 {
		s.ask(api.AskQuestion, []string{"May the old login go in 3.1 already?", "Who is told of the new limits?"}[i%2], "mobile", "hub-2", "hub-1", time.Duration(11+i)*minute, 0, "", nil)
	}
	s.ask(api.AskQuestion, "Is the database of May to be kept?", "data", "hub-2", "hub-2", 5*minute, 0, "", nil)
	for i := range 40 {
		from, to := []string{"api", "search", "mobile", "build-7"}[i%4], "lead"
		s.say(time.Duration(200-5*i)*second, from, to, protocol.WorkerReport, []string{"31 of 40 tests pass", "600,000 of 1,000,000", "The passkey is asked for", "3 of 4 built"}[i%4], 3)
	}
	return s.mesh("busy", 1_204_882, [5][]answered{
		{{"#needs", "8"}, {"#needs", "Push tag v3.1.0-rc1 to origin?"}, {"#needs", "denied in 1:"}, {"#needs", "Which limit for anonymous requests?"}, {"#needs", "goes on with 60 a minute in 2"}, {"#needs", " more"}},
		{{"#agents", "web"}, {"#agents", "deaf 5 min"}, {"#agents", "runs go test ./api"}, {"#agents", "needs a person 8 min"}, {"#agents", "partner-ci"}},
		{{"#work", "Index the old tickets, too"}, {"#work", "Should closed tickets older than two years be found?"}, {"#work", "Ship the web client of 3.1"}, {"#work", "npm run build: out of memory (exit 134)"}},
		{{"#work", "4 running"}, {"#work", "Make ./api pass with the new limits"}, {"#work", "31 of 40 tests pass"}, {"#messages", " s ago"}},
		{{"#top", "live"}, {"#top", "lead"}, {"#foot", "3 of 3 other nodes linked"}, {"#foot", "340 behind"}, {"#foot", "clock of build-7 3 min off"}},
	})
}
