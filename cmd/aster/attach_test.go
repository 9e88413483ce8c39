package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestNameOfASavedFileIsOneInItsFolder(t *testing.T) {
	for name, want := range map[string]string{
		"notes.txt":                          "notes.txt",
		"../../../etc/passwd":                "passwd",
		`..\..\boot.ini`:                     "boot.ini",
		"/":                                  "attachment-1",
		"..":                                 "attachment-1",
		"":                                   "attachment-1",
		".bashrc":                            "bashrc",
		"-rf":                                "rf",
		"a\x1b[31m\x00\nb.txt":               "a[31mb.txt",
		"report\u202egnp.exe":                "reportgnp.exe",
		"\u200b\ufeff":                       "attachment-1",
		"con":                                "attachment-1-con",
		"LPT1.txt":                           "attachment-1-LPT1.txt",
		"C:evil.txt":                         "evil.txt",
		"file.txt:stream":                    "stream",
		"$(reboot)`x`;y&z|w.sh":              "(reboot)xyzw.sh",
		"Bericht für März.pdf":               "Bericht für März.pdf",
		"\xff\xfe.bin":                       "bin",
		strings.Repeat("n", 500):             strings.Repeat("n", 97),
		strings.Repeat("ä", 500):             strings.Repeat("ä", 48),
		strings.Repeat("n", 500) + ".tar.gz": strings.Repeat("n", 97) + ".gz",
		"x." + strings.Repeat("e", 500):      "x." + strings.Repeat("e", 95),
	} {
		got := fileName(name, 0)
		if got != want || !utf8.ValidString(got) || filepath.Base(got) != got {
			t.Errorf("%.60q: %q, want %q", name, got, want)
		}
	}
}

func TestSavedFilesStandBesideWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	content := func() io.ReadCloser { return io.NopCloser(strings.NewReader("x")) }
	const sum = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881" // of x
	if err := os.Symlink(filepath.Join(dir, "elsewhere"), filepath.Join(dir, "a.txt")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := saveAs(dir, "a.txt", sum, content()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := saveAs(dir, "b.txt", strings.Repeat("0", 64), content()); err == nil {
		t.Error("other content than was promised stays")
	}
	found, err := filepath.Glob(filepath.Join(dir, "*"))
	want := []string{filepath.Join(dir, "a-2.txt"), filepath.Join(dir, "a-3.txt"), filepath.Join(dir, "a.txt")}
	if slices.Sort(found); err != nil || !slices.Equal(found, want) {
		t.Errorf("there are %q, %v", found, err)
	}
}
