package keeper

import (
	"bytes"
	"encoding/json"
)

// lineBytesMax bounds the line that is looked at; the rest of a longer one is skipped.
const lineBytesMax = 1 << 20

// callsMax bounds the model calls that are told apart by id; beyond it every mention counts.
const callsMax = 4096

// usage adds up the tokens that a run reports of itself: JSON lines with "usage":{"input_tokens":…,"output_tokens":…},
// at the top (codex exec --json, one a turn) or in "message" (agents in stream-json, repeated for each part of one call,
// told apart by the message's id). A line of type "result" gives the total of all. Input read from a cache is not
// counted. Anything else is ignored: the output is foreign text.
type usage struct {
	line  []byte
	skip  bool // the current line is too long
	calls map[string]int64
	sum   int64
	total int64
}

type usageLine struct {
	Type    string      `json:"type"`
	Usage   *tokenCount `json:"usage"`
	Message *struct {
		ID    string      `json:"id"`
		Usage *tokenCount `json:"usage"`
	} `json:"message"`
}

type tokenCount struct {
	Input  int64 `json:"input_tokens"`
	Output int64 `json:"output_tokens"`
}

// plausibleMax keeps a foreign number from overflowing the sum.
const plausibleMax = 1 << 40

func (c *tokenCount) tokens() int64 {
	return min(max(c.Input, 0), plausibleMax) + min(max(c.Output, 0), plausibleMax)
}

// add looks at the next piece of output.
func (u *usage) add(p []byte) {
	for {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			u.keep(p)
			return
		}
		u.keep(p[:end])
		if !u.skip {
			u.look(u.line)
		}
		u.line, u.skip = u.line[:0], false
		p = p[end+1:]
	}
}

// end looks at a last line without a line end.
func (u *usage) end() { u.add([]byte{'\n'}) }

func (u *usage) keep(p []byte) {
	if u.skip {
		return
	}
	// A line that does not begin as an object is nobody's report: the pass over gigabytes copies nothing.
	if len(u.line)+len(p) > lineBytesMax || (len(u.line) == 0 && len(p) > 0 && p[0] != '{') {
		u.skip = true
		return
	}
	u.line = append(u.line, p...)
}

func (u *usage) look(line []byte) {
	if !bytes.Contains(line, []byte(`"usage"`)) {
		return
	}
	var l usageLine
	if json.Unmarshal(line, &l) != nil {
		return
	}
	if l.Usage != nil {
		if l.Type == "result" {
			u.total = max(u.total, l.Usage.tokens())
		} else {
			u.count("", l.Usage.tokens())
		}
	}
	if l.Message != nil && l.Message.Usage != nil {
		u.count(l.Message.ID, l.Message.Usage.tokens())
	}
}

func (u *usage) count(id string, n int64) {
	if id != "" && len(id) <= 200 {
		if u.calls == nil {
			u.calls = map[string]int64{}
		}
		before, known := u.calls[id]
		if known || len(u.calls) < callsMax {
			u.calls[id] = max(n, before)
			n = max(n-before, 0)
		}
	}
	u.sum = min(u.sum+n, plausibleMax)
}

// tokens is what the run has reported so far; it never falls.
func (u *usage) tokens() int64 { return max(u.sum, u.total) }
