package web

import (
	"regexp"
	"strings"
	"testing"
)

// What the page loads, all together: files of its own origin, at most 200 KiB as they travel.
func TestPageIsSmallAndWhole(t *testing.T) {
	s := newServer(t, Config{Backend: newFake()})
	named := regexp.MustCompile(`(?:(?:from |import )"\./|"/static/|"/)([\w-]+\.[\w.]+)"`)
	seen, todo, sum := map[string]bool{}, []string{"index.html"}, 0
	for len(todo) > 0 {
		name := todo[0]
		todo = todo[1:]
		if seen[name] {
			continue
		}
		seen[name] = true
		a, ok := s.assets[name]
		if !ok {
			t.Fatalf("the page asks for %s, which is not there", name)
		}
		sum += len(a.zip)
		if strings.Contains(string(a.body), "innerHTML") || strings.Contains(string(a.body), "https://") && name != "icon.svg" && !strings.Contains(name, "js") {
			t.Errorf("%s gives markup or names another origin", name)
		}
		for _, m := range named.FindAllStringSubmatch(string(a.body), -1) {
			todo = append(todo, m[1])
		}
	}
	if sum > 200<<10 {
		t.Errorf("the page is %d bytes packed", sum)
	}
	for name := range s.assets {
		if !seen[name] && name != "locked.html" && name != "used.html" && name != "locked.js" {
			t.Errorf("nothing asks for %s", name)
		}
	}
	t.Logf("%d files, %d bytes packed", len(seen), sum)
}

func TestBothLanguagesHaveEverySentence(t *testing.T) {
	js := string(loadAssets()["strings.js"].body)
	en, ko, ok := strings.Cut(js, "\n  ko: {")
	if !ok {
		t.Fatal("no Korean table")
	}
	key := regexp.MustCompile(`(?m)(?:^    |, )"?([a-z_0-9-]+)"?: "([^"]*(?:\\"[^"]*)*)"`)
	hole := regexp.MustCompile(`\{\w+\}`)
	holes := func(s string) map[string]bool {
		out := map[string]bool{}
		for _, h := range hole.FindAllString(s, -1) {
			out[h] = true
		}
		return out
	}
	read := func(s string) map[string]string {
		out := map[string]string{}
		for _, m := range key.FindAllStringSubmatch(s, -1) {
			out[m[1]] = m[2]
		}
		return out
	}
	a, b := read(en), read(ko)
	if len(a) < 100 {
		t.Fatalf("%d English sentences", len(a))
	}
	for k, v := range a {
		w, ok := b[k]
		if !ok {
			t.Errorf("%s is not said in Korean", k)
			continue
		}
		for h := range holes(v) {
			if !holes(w)[h] {
				t.Errorf("%s in Korean lacks %s", k, h)
			}
		}
	}
	for k := range b {
		if _, ok := a[k]; !ok {
			t.Errorf("%s is said in Korean only", k)
		}
	}
	used := regexp.MustCompile(`\bt\("([a-z_0-9-]+)"`)
	for name, asset := range loadAssets() {
		for _, m := range used.FindAllStringSubmatch(string(asset.body), -1) {
			if _, ok := a[m[1]]; !ok && !strings.HasSuffix(m[1], "_") {
				t.Errorf("%s says %q, which is not in the table", name, m[1])
			}
		}
	}
}
