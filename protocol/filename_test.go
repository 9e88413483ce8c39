package protocol

import (
	"path/filepath"
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
		got := FileName(name, 0)
		if got != want || !utf8.ValidString(got) || filepath.Base(got) != got {
			t.Errorf("%.60q: %q, want %q", name, got, want)
		}
	}
}
