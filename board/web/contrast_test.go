package web

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// tokens reads the custom properties that hold a colour, light and dark.
func tokens(t *testing.T, css string) map[string]map[string][3]float64 {
	t.Helper()
	light, rest, ok := strings.Cut(css, "@media (prefers-color-scheme: dark)")
	dark, _, ok2 := strings.Cut(rest, "\n}\n")
	if !ok || !ok2 {
		t.Fatal("the stylesheet does not begin with its tokens")
	}
	colour := regexp.MustCompile(`--([\w-]+): #([0-9A-Fa-f]{6})`)
	out := map[string]map[string][3]float64{"light": {}, "dark": {}}
	for scheme, text := range map[string]string{"light": light, "dark": dark} {
		for _, m := range colour.FindAllStringSubmatch(text, -1) {
			n, err := strconv.ParseUint(m[2], 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			out[scheme][m[1]] = [3]float64{float64(n>>16&255) / 255, float64(n>>8&255) / 255, float64(n&255) / 255}
		}
	}
	return out
}

// contrast is the ratio of WCAG 2.2, 1.4.3.
func contrast(a, b [3]float64) float64 {
	luminance := func(c [3]float64) float64 {
		for i, v := range c {
			if v <= 0.04045 {
				c[i] = v / 12.92
			} else {
				c[i] = math.Pow((v+0.055)/1.055, 2.4)
			}
		}
		return 0.2126*c[0] + 0.7152*c[1] + 0.0722*c[2]
	}
	x, y := luminance(a), luminance(b)
	return (math.Max(x, y) + 0.05) / (math.Min(x, y) + 0.05)
}

func TestStylesheetContrast(t *testing.T) {
	css := string(loadAssets()["board.css"].body)
	all := tokens(t, css)
	if n := len(all["light"]); n != len(all["dark"]) || n != 19 {
		t.Fatalf("%d light and %d dark colours, want 19 each", n, len(all["dark"]))
	}
	grounds := []string{"bg", "surface", "inset"}
	var pairs []struct {
		ink, ground string
		least       float64
	}
	add := func(ink, ground string, least float64) {
		pairs = append(pairs, struct {
			ink, ground string
			least       float64
		}{ink, ground, least})
	}
	for _, g := range grounds {
		for _, ink := range []string{"text", "text2", "text3", "accent", "run", "wait", "bad", "ok"} {
			add(ink, g, 4.9)
		}
		add("edge", g, 3.3)
	}
	for _, tone := range []string{"accent", "run", "wait", "bad", "ok"} {
		add(tone, tone+"-soft", 4.9)
		add("text", tone+"-soft", 4.9)
	}
	add("on-accent", "accent", 4.9)
	for scheme, colours := range all {
		for _, p := range pairs {
			ink, ok := colours[p.ink]
			ground, ok2 := colours[p.ground]
			if !ok || !ok2 {
				t.Fatalf("%s has no %s or no %s", scheme, p.ink, p.ground)
			}
			if got := math.Round(100*contrast(ink, ground)) / 100; got < p.least {
				t.Errorf("%s: %s on %s has %.2f:1, want %.1f:1", scheme, p.ink, p.ground, got, p.least)
			}
		}
	}
	// Whatever is drawn is drawn in tokens.
	_, rules, _ := strings.Cut(css, "/* Ground */")
	if raw := regexp.MustCompile(`#[0-9A-Fa-f]{3,8}\b[^{,]*;`).FindString(rules); raw != "" {
		t.Errorf("a colour beside the tokens: %s", raw)
	}
	for _, name := range regexp.MustCompile(`var\(--([\w-]+)\)`).FindAllStringSubmatch(rules, -1) {
		if _, ok := all["light"][name[1]]; !ok && name[1] != "shadow" && name[1] != "sans" && name[1] != "mono" {
			t.Errorf("--%s is used and nowhere set", name[1])
		}
	}
}
