package journal

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/aster-mesh/aster/protocol"
)

// The search index holds words that we cut ourselves, so that Chinese, Japanese and Korean are found by any part of
// two characters or more (the engine's own trigrams need three, and many Korean words have two) and so that nothing a
// person types is syntax. A run of those scripts becomes overlapping pairs and its last character; a search for a part
// of it is then a search for neighbouring pairs.

// textBytesMax is how much text of one message is indexed.
const textBytesMax = 64 << 10

// wordRunesMax cuts what is no word, such as base 64.
const wordRunesMax = 64

// isPaired says whether a script is written without spaces between words, or glues endings to them.
func isPaired(r rune) bool {
	if r < 0x1100 { // before the first of them; most text is
		return false
	}
	return unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana)
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }

// runs calls f with each maximal run of word characters of one manner of writing, in lower case.
func runs(text string, f func(run []rune, paired bool)) {
	var run []rune
	paired := false
	flush := func() {
		if len(run) > 0 {
			f(run, paired)
		}
		run = run[:0]
	}
	for _, r := range composeHangul(text) {
		if !isWord(r) {
			flush()
			continue
		}
		if p := isPaired(r); p != paired && !unicode.IsMark(r) {
			flush()
			paired = p
		}
		run = append(run, unicode.ToLower(r))
	}
	flush()
}

// indexText is the text of a message as the index gets it: words with spaces between.
func indexText(e *protocol.Envelope) string {
	out := make([]byte, 0, 256+len(e.Value))
	for _, s := range []string{string(e.From), e.FromName, string(e.To), string(e.Room), string(e.Intent), string(e.ID)} {
		out = appendWords(out, s)
	}
	eachText(e.Value, func(text string) { out = appendWords(out, text) })
	for _, b := range e.Blobs {
		out = appendWords(out, b.Name)
	}
	return string(out)
}

// asciiWord is the lower case of each ASCII character that words are made of; of the others 0.
var asciiWord = func() (t [utf8.RuneSelf]byte) {
	for r := range rune(utf8.RuneSelf) {
		if isWord(r) {
			t[r] = byte(unicode.ToLower(r))
		}
	}
	return t
}()

// appendWords appends the words of a text, each with a space behind it, until out has textBytesMax.
func appendWords(out []byte, text string) []byte {
	if strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return appendRuns(out, text)
	}
	for at := 0; at < len(text) && len(out) <= textBytesMax; at++ { // what runs does, without runes: most text is of this kind
		length := 0
		for ; at < len(text) && asciiWord[text[at]] != 0; at++ {
			if length++; length <= wordRunesMax {
				out = append(out, asciiWord[text[at]])
			}
		}
		if length > 0 {
			out = append(out, ' ')
		}
	}
	return out
}

// appendRuns is appendWords for any script.
func appendRuns(out []byte, text string) []byte {
	runs(text, func(run []rune, paired bool) {
		if len(out) > textBytesMax {
			return
		}
		if !paired {
			for _, r := range run[:min(len(run), wordRunesMax)] {
				out = utf8.AppendRune(out, r)
			}
			out = append(out, ' ')
			return
		}
		for i := range run {
			for _, r := range run[i:min(i+2, len(run))] {
				out = utf8.AppendRune(out, r)
			}
			out = append(out, ' ')
		}
	})
	return out
}

// eachText visits the texts of a JSON value in their order, not its keys.
func eachText(value []byte, f func(string)) {
	depth := 0
	for at := 0; at < len(value); at++ {
		switch value[at] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			begin, plain := at, true
			for at++; at < len(value) && value[at] != '"'; at++ {
				if value[at] == '\\' {
					plain = false
					at++
				}
			}
			if at >= len(value) {
				return // no JSON
			}
			if depth > protocol.NestingMax || isKey(value[at+1:]) {
				continue
			}
			text := string(value[begin+1 : at])
			if !plain || !utf8.ValidString(text) {
				if json.Unmarshal(value[begin:at+1], &text) != nil {
					continue
				}
			}
			f(text)
		}
	}
}

// isKey says whether what stands behind a text makes it a key.
func isKey(behind []byte) bool {
	behind = bytes.TrimLeft(behind, " \t\r\n")
	return len(behind) > 0 && behind[0] == ':'
}

// termsMax bounds what one search asks.
const termsMax = 16

// matchExpression turns what a person typed into the index's query language: every term quoted, all of them wanted, the
// last one as a beginning. Empty when there is nothing to search for.
func matchExpression(words string) string {
	var terms []string
	last := ""
	runs(protocol.CutText(words, 1024), func(run []rune, paired bool) {
		if len(terms) == termsMax {
			return
		}
		var parts []string
		last = "*"
		switch {
		case !paired:
			parts = []string{string(run[:min(len(run), wordRunesMax)])}
		case len(run) == 1:
			parts = []string{string(run)}
		default:
			last = ""
			for i := range len(run) - 1 {
				parts = append(parts, string(run[i:i+2]))
			}
		}
		term := `"` + strings.Join(parts, " ") + `"`
		if paired && len(run) == 1 {
			term += " *" // one character is the beginning of a pair wherever it stands
			last = ""
		}
		terms = append(terms, term)
	})
	if len(terms) == 0 {
		return ""
	}
	if last != "" {
		terms[len(terms)-1] += " " + last
	}
	return strings.Join(terms, " ")
}

// Conjoining jamo of a syllable, as macOS writes file names (Unicode 3.12).
const (
	jamoL, jamoV, jamoT    = 0x1100, 0x1161, 0x11a7
	countL, countV, countT = 19, 21, 28
	syllables              = 0xac00
)

// composeHangul joins decomposed Korean syllables, so that both spellings of a text are found by either.
func composeHangul(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return r >= jamoL && r < jamoL+countL }) {
		return text
	}
	var out []rune
	for _, r := range text {
		if n := len(out); n > 0 {
			prev := out[n-1]
			switch {
			case prev >= jamoL && prev < jamoL+countL && r >= jamoV && r < jamoV+countV:
				out[n-1] = syllables + ((prev-jamoL)*countV+(r-jamoV))*countT
				continue
			case prev >= syllables && prev < syllables+countL*countV*countT && (prev-syllables)%countT == 0 && r > jamoT && r < jamoT+countT:
				out[n-1] = prev + (r - jamoT)
				continue
			}
		}
		out = append(out, r)
	}
	return string(out)
}
