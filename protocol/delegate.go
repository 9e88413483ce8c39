package protocol

import (
	"encoding/json"
	"slices"
	"strings"
)

// Blank says that a text has nothing but white space.
func Blank(s string) bool { return strings.TrimSpace(s) == "" }

// CheckAcceptance refuses a Delegate's value in which an acceptance command is empty: what would be run checks nothing, and
// its report would say that it passed. Other names and values of other shapes are not its business.
func CheckAcceptance(name Intent, value json.RawMessage) *Refusal {
	var v struct {
		Accept json.RawMessage `json:"accept"`
	}
	if name != Delegate || json.Unmarshal(value, &v) != nil {
		return nil
	}
	var list []json.RawMessage
	if json.Unmarshal(v.Accept, &list) != nil {
		list = []json.RawMessage{v.Accept}
	}
	if !slices.ContainsFunc(list, func(raw json.RawMessage) bool {
		var command *string
		return json.Unmarshal(raw, &command) == nil && command != nil && Blank(*command)
	}) {
		return nil
	}
	return Refuse(CodeBadFrame, "an acceptance command of this Delegate is empty, which checks nothing", `put a command into value.accept, or leave "accept" out`)
}
