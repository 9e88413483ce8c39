package protocol

import "testing"

func TestAnEmptyAcceptanceCommandIsRefused(t *testing.T) {
	for value, refused := range map[string]bool{
		`{"task":"x","accept":[""]}`:           true,
		`{"task":"x","accept":["make"," \t"]}`: true,
		`{"task":"x","accept":"\n"}`:           true,
		`{"task":"x","accept":["make"]}`:       false,
		`{"task":"x","accept":[]}`:             false,
		`{"task":"x","accept":null}`:           false,
		`{"task":"x","accept":[null,3,{}]}`:    false,
		`{"task":"x"}`:                         false,
		`"words"`:                              false,
		``:                                     false,
	} {
		if no := CheckAcceptance(Delegate, []byte(value)); (no != nil) != refused || no != nil && no.Code != CodeBadFrame {
			t.Errorf("%s: %v", value, no)
		}
	}
	if no := CheckAcceptance("Request", []byte(`{"accept":[""]}`)); no != nil {
		t.Errorf("a Request: %v", no)
	}
}
