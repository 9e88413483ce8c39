package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
)

func TestNumbersThatNoDoubleHoldsAreFound(t *testing.T) {
	digits := strings.Repeat("9", 5000)
	for text, wild := range map[string]bool{
		`{"a":1e308,"b":-0.0e-1,"c":1e-999999}`: false,
		`[` + digits[:308] + `]`:                false,
		`[0.` + digits[:390] + `]`:              false,
		`["` + digits + `","1e999999\"1e999"]`:  false,
		`{"1e999":true}`:                        false,
		`{"e":1e999999}`:                        true,
		`[-1E309]`:                              true,
		`[` + digits[:310] + `]`:                true,
		`{"m":` + digits + `}`:                  true,
		`[0.` + digits + `]`:                    true,
	} {
		if no := RefuseNumbers("this", []byte(text)); no != nil != wild || wild && no.Code != CodeWrongType {
			t.Errorf("%.60s is refused: %v, want %v", text, no, wild)
		}
	}
}

// FuzzNumbers compares what is found with what the standard library parses, and wants nothing wild to be left.
func FuzzNumbers(f *testing.F) {
	for _, s := range []string{`{"m":` + strings.Repeat("9", 5000) + `,"e":1e999999}`, `["1e999",-1E309,1e999]`, `[1e-400]`, `"\"1e999`, `1e`, `-`, `1.5e+3`, `"\\"1e999`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		from, _ := WildNumber(raw)
		if !json.Valid(raw) {
			return // it may say anything: the decoder refuses it
		}
		wild := false
		for d := json.NewDecoder(bytes.NewReader(raw)); ; {
			d.UseNumber()
			token, err := d.Token()
			if err != nil {
				break
			}
			if n, ok := token.(json.Number); ok {
				_, err := strconv.ParseFloat(string(n), 64)
				wild = wild || len(n) > numberBytesMax || errors.Is(err, strconv.ErrRange)
			}
		}
		if wild != (from >= 0) {
			t.Errorf("a wild number in %q: %v, found at %d", raw, wild, from)
		}
		tame := TameNumbers(raw)
		if at, _ := WildNumber(tame); at >= 0 || !json.Valid(tame) || !wild && !bytes.Equal(tame, raw) {
			t.Errorf("%q became %q", raw, tame)
		}
	})
}
