package protocol

import (
	"slices"
	"strconv"
)

// numberBytesMax is the longest number that is let in: more than any IEEE double needs, and far below where readers of JSON
// refuse (the first at 4,300 digits).
const numberBytesMax = 400

// doubleDigits is how many digits a number without exponent may have before it could be beyond every double.
const doubleDigits = 308

// HoldsNumber says whether every reader of JSON holds a number as it is written: it is no longer than 400 bytes, and an IEEE
// double is near it. text must be a number of JSON.
func HoldsNumber(text []byte) bool {
	if len(text) > numberBytesMax {
		return false
	}
	if len(text) <= doubleDigits && !slices.ContainsFunc(text, func(c byte) bool { return c|0x20 == 'e' }) {
		return true
	}
	_, err := strconv.ParseFloat(string(text), 64)
	return err == nil
}

// WildNumber returns where in JSON the first number stands that HoldsNumber denies, from which byte to which; -1 is none. Like
// Depth it follows no grammar, and any bytes are safe to give it.
func WildNumber(raw []byte) (from, to int) {
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '"':
			for i++; i < len(raw) && raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
		case c == '-' || c >= '0' && c <= '9':
			end := i + 1
			for end < len(raw) && inNumber(raw[end]) {
				end++
			}
			if !HoldsNumber(raw[i:end]) {
				return i, end
			}
			i = end - 1
		}
	}
	return -1, -1
}

func inNumber(c byte) bool {
	return c >= '0' && c <= '9' || c == '.' || c == '-' || c == '+' || c|0x20 == 'e'
}

// RefuseNumbers is the refusal of JSON with a number that some reader does not hold, or nil. what names the JSON.
func RefuseNumbers(what string, raw []byte) *Refusal {
	if at, _ := WildNumber(raw); at >= 0 {
		return RefuseNumber(what, at)
	}
	return nil
}

// RefuseNumber is the refusal of the number at a byte of what.
func RefuseNumber(what string, at int) *Refusal {
	return Refuse(CodeWrongType, "%s has a number at byte %d that not every reader holds", "send it as a string", what, at)
}

// TameNumbers returns raw with each number that not every reader holds as a string of its digits, cut to 400 bytes; raw
// itself when there is none. raw must be JSON.
func TameNumbers(raw []byte) []byte {
	var out []byte
	for {
		from, to := WildNumber(raw)
		if from < 0 {
			break
		}
		out = append(append(out, raw[:from]...), '"')
		out = append(out, CutText(string(raw[from:to]), numberBytesMax)...)
		out, raw = append(out, '"'), raw[to:]
	}
	if out == nil {
		return raw
	}
	return append(out, raw...)
}
