package main

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/aster-mesh/aster/protocol"
)

// clean makes foreign words safe for one line of a terminal: no control or direction characters, no line breaks.
func clean(s string) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
	}), " ")
}

// cleanBlock is clean for words that keep their lines.
func cleanBlock(s string) string {
	lines := strings.Split(strings.ToValidUTF8(s, "\ufffd"), "\n")
	for i, l := range lines {
		lines[i] = strings.Map(func(r rune) rune {
			switch {
			case r == '\t':
				return r
			case unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
				return -1
			}
			return r
		}, l)
	}
	return strings.Join(lines, "\n")
}

// shorten cuts to n characters.
func shorten(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

func joinWords(args []string) string { return strings.Join(args, " ") }

func trimEnd(s string) string { return strings.TrimRight(s, "\r\n") }

// table prints rows with aligned columns, two spaces apart, nothing behind the last.
func table(w io.Writer, rows ...[]string) {
	var width []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], cells(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			if i > 0 {
				line.WriteString("  ")
			}
			line.WriteString(cell)
			line.WriteString(strings.Repeat(" ", width[i]-cells(cell)))
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
}

// wide are the letters that a terminal draws in two cells: those of East Asia, full-width forms and pictures.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{{0x1100, 0x115f, 1}, {0x2e80, 0x303e, 1}, {0x3041, 0xa4cf, 1}, {0xa960, 0xa97c, 1}, {0xac00, 0xd7a3, 1}, {0xf900, 0xfaff, 1}, {0xfe30, 0xfe6f, 1}, {0xff00, 0xff60, 1}, {0xffe0, 0xffe6, 1}},
	R32: []unicode.Range32{{0x1f300, 0x1f64f, 1}, {0x1f680, 0x1f6ff, 1}, {0x1f900, 0x1f9ff, 1}, {0x1fa70, 0x1faff, 1}, {0x20000, 0x3fffd, 1}},
}

// cells is how wide a terminal draws s.
func cells(s string) int {
	n := 0
	for _, r := range s {
		switch {
		case unicode.Is(wide, r):
			n += 2
		case !unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
			n++
		}
	}
	return n
}

// clock is the time of day here; of another day with its date before it. A moment that nobody kept is a dash.
func clock(ms int64) string {
	if ms <= 0 {
		return "-"
	}
	t := time.UnixMilli(ms)
	if now := time.Now(); t.YearDay() != now.YearDay() || t.Year() != now.Year() {
		return t.Format("2006-01-02 15:04:05")
	}
	return t.Format("15:04:05")
}

// span is a duration as people say it: 1.8 ms, 12 s, 4 min, 3 h 12 min, 2 days.
func span(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Second:
		return fmt.Sprintf("%s ms", short(float64(d)/float64(time.Millisecond)))
	case d < 10*time.Second:
		return fmt.Sprintf("%s s", short(d.Seconds()))
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return pair(int(d.Minutes()), "min", int(d.Seconds())%60, "s", 10)
	case d < 48*time.Hour:
		return pair(int(d.Hours()), "h", int(d.Minutes())%60, "min", 100)
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// pair leaves the small unit out where it says nothing any more.
func pair(big int, bigUnit string, little int, littleUnit string, until int) string {
	if little == 0 || big >= until {
		return fmt.Sprintf("%d %s", big, bigUnit)
	}
	return fmt.Sprintf("%d %s %d %s", big, bigUnit, little, littleUnit)
}

func short(f float64) string {
	if f >= 10 || f == float64(int(f)) {
		return fmt.Sprintf("%.0f", f)
	}
	return fmt.Sprintf("%.1f", f)
}

// ago is how long ago a moment of another clock was, in seconds or more; a clock ahead of ours gives 0 s.
func ago(ms int64) string {
	d := time.Since(time.UnixMilli(ms)).Truncate(time.Second)
	if d <= 0 {
		return "0 s"
	}
	return span(d)
}

// bytesText is a size in powers of 1024.
func bytesText(n int64) string {
	const units = "KMGT"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	f, i := float64(n)/1024, 0
	for f >= 1024 && i < len(units)-1 {
		f, i = f/1024, i+1
	}
	return fmt.Sprintf("%s %ciB", short(f), units[i])
}

// count groups digits by threes.
func count(n uint64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// idOf is how people see a message: t-7kq2m for work, m-7kq2m otherwise.
func idOf(intent protocol.Intent, short string) string {
	if strings.HasPrefix(short, "t-") || strings.HasPrefix(short, "m-") {
		return short
	}
	if intent == protocol.Delegate {
		return "t-" + short
	}
	return "m-" + short
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
