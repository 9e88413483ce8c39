package protocol

import "testing"

// Every kind of feedback that a board posts (wire 7.7) has words for people.
func TestEveryKindOfFeedbackHasWords(t *testing.T) {
	for value, want := range map[string]string{
		`{"kind":"decision","id":"d1","question":"Ship it?","choice":"yes","text":"today"}`:           "Ship it?: yes: today",
		`{"kind":"decision","id":"d1","choice":"yes"}`:                                                "d1: yes",
		`{"kind":"proceed","plannedId":"p1","title":"Docs"}`:                                          "go ahead: Docs",
		`{"kind":"proceed","plannedId":"p1"}`:                                                         "go ahead: p1",
		`{"kind":"reorder","tab":"planned","order":["a","b"]}`:                                        "reorder planned",
		`{"kind":"reorder","tab":"planned","moved":{"id":"a"}}`:                                       "reorder planned: a",
		`{"kind":"context-feedback","ctx":"current","refId":"c1","title":"Login","text":"why slow?"}`: "Login: why slow?",
		`{"kind":"fallback-rerender","id":"x","label":"chart"}`:                                       "show again: chart",
		`{"kind":"mode","standby":true}`:                                                              "standby on",
		`{"kind":"mode","standby":false}`:                                                             "standby off",
		`{"kind":"request","id":"free-request","text":"look at CI"}`:                                  "look at CI",
		`{"kind":"mode","standby":"maybe","text":"hm"}`:                                               "hm",
		`{"kind":7,"text":"hm"}`:                                                                      "hm",
	} {
		e := Envelope{Intent: "OperatorFeedback", Value: []byte(value)}
		if got := e.Text(200); got != want {
			t.Errorf("%s: got %q, want %q", value, got, want)
		}
		if got := e.Text(8); len(got) > 8 {
			t.Errorf("%s: cut to 8 it is %q", value, got)
		}
	}
	e := Envelope{Intent: "Note", Value: []byte(`{"kind":"mode","standby":true}`)}
	if got := e.Text(200); got != "" {
		t.Errorf("another message: %q", got)
	}
}
