package protocol

import (
	"path"
	"strconv"
	"strings"
	"unicode"
)

// FileName makes a name in one folder of a sender's name: its last part, without what cannot be seen, what a shell or a
// file system takes for more, a dot in front, or a name that Windows keeps for a device. index, from 0,
// tells apart those of which nothing is left. Two names may become one: whoever writes files numbers them.
func FileName(name string, index int) string {
	name = name[strings.LastIndexAny(name, `/\\:`)+1:]
	name = strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) || unicode.Is(unicode.Cf, r) || strings.ContainsRune("\"<>|?*%;`$&!", r) || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, strings.ToValidUTF8(name, ""))
	name = strings.Trim(name, " .-~")
	for len(name) > 120 {
		ending := path.Ext(name)
		if len(ending) > 20 {
			ending = ""
		}
		name = strings.TrimSuffix(CutText(strings.TrimSuffix(name, ending), 100), "…") + ending
	}
	stem, _, _ := strings.Cut(strings.ToUpper(name), ".")
	device := stem == "CON" || stem == "PRN" || stem == "AUX" || stem == "NUL" || len(stem) == 4 && (stem[:3] == "COM" || stem[:3] == "LPT")
	if name == "" || device {
		name = "attachment-" + strconv.Itoa(index+1) + "-" + name
	}
	return strings.TrimSuffix(name, "-")
}
