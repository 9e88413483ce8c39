package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// clockVariable tells a node that was built with skewSource which clock it has: seconds that it is ahead of the
// machine's, after how many milliseconds of its life it jumps, and by how much it is ahead then.
const clockVariable = "ASTER_TEST_CLOCK"

// skewSource is appended to package time. A time namespace shifts the monotonic clocks alone and a process cannot have a
// wall clock of its own, so the nodes of this test are built with another time.Now; everything that reads a clock has it,
// foreign libraries too.
const skewSource = `
var skewBefore, skewAfter, skewAt = readSkew()

func skewNow(mono int64) int64 {
	if mono < skewAt {
		return skewBefore
	}
	return skewAfter
}

func readSkew() (before, after, at int64) {
	text, _ := syscall.Getenv("` + clockVariable + `")
	var n [3]int64
	i, sign := 0, int64(1)
	for _, c := range []byte(text) {
		switch {
		case c == ' ':
			i, sign = min(i+1, 2), 1
		case c == '-':
			sign = -1
		default:
			n[i] = n[i]*10 + sign*int64(c-'0')
		}
	}
	return n[0], n[2], n[1] * 1_000_000
}
`

// skewedBuild is a node's binary with such a clock. Building it takes minutes: everything depends on package time.
var skewedBuild = sync.OnceValues(func() (string, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env: %w", err)
	}
	source := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	raw, err := os.ReadFile(source)
	if err != nil {
		return "", err
	}
	const wall, imports = "\tsec += unixToInternal - minWall\n", "import (\n"
	text := string(raw)
	if strings.Count(text, wall) != 1 || strings.Count(text, imports) != 1 {
		return "", fmt.Errorf("%s is not as this test knows it: %s", source, wall)
	}
	text = strings.Replace(text, imports, imports+"\t\"syscall\"\n", 1)
	text = strings.Replace(text, wall, "\tsec += skewNow(mono)\n"+wall, 1) + skewSource
	dir := filepath.Dir(built)
	if built == os.Getenv("ASTER_BIN") {
		if dir, err = os.MkdirTemp("", "aster-skew-"); err != nil {
			return "", err
		}
	}
	changed, overlay := filepath.Join(dir, "time.go"), filepath.Join(dir, "overlay.json")
	replaced, err := json.Marshal(map[string]map[string]string{"Replace": {source: changed}})
	if err != nil {
		return "", err
	}
	for path, content := range map[string][]byte{changed: []byte(text), overlay: replaced} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return "", err
		}
	}
	binary := filepath.Join(dir, "aster-skewed")
	return binary, goBuild(binary, "-overlay", overlay)
})

// skew draws a clock for a node's next start: up to ten minutes off, and sometimes it is set while the node runs.
func skew(rng *rand.Rand) string {
	const most = int(10 * time.Minute / time.Second)
	draw := func() int { return rng.IntN(2*most+1) - most }
	before := draw()
	if rng.IntN(2) == 0 {
		return fmt.Sprintf("%d 0 %d", before, before)
	}
	return fmt.Sprintf("%d %d %d", before, rng.IntN(20_000), draw())
}

// TestSkewedClock shows that such a node's clock is what it was told: the control of every run that has them.
func TestSkewedClock(t *testing.T) {
	if !long {
		t.Skip("the clocks of whole nodes are shifted in the long run alone: node/sim does it in every run")
	}
	n := newNode(t, "n", "")
	binary, err := skewedBuild()
	must(t, err)
	n.program = binary
	for _, ahead := range []time.Duration{-10 * time.Minute, 7 * time.Minute} {
		n.env = []string{fmt.Sprintf("%s=%d 0 %d", clockVariable, ahead/time.Second, ahead/time.Second)}
		n.up("")
		if off := time.Until(time.UnixMilli(n.mustStatus().Now)) - ahead; off.Abs() > 10*time.Second {
			t.Errorf("told to be %s ahead it is off by %s", ahead, off)
		}
		n.kill()
	}
}
