package link

import (
	"testing"
	"testing/synctest"
)

// heard is what a client was sent, with whether it came as binary.
type heard struct {
	text   string
	binary bool
}

func TestFramesGoOutInTheFormThatWasAgreedOn(t *testing.T) {
	shout := func(frame []byte) []byte { return append([]byte("BIN:"), frame...) }
	for _, tt := range []struct {
		asks   []string
		agreed string
		prefix string
		binary bool
	}{
		{nil, "", "", false},
		{[]string{"unheard.of"}, "", "", false},
		{[]string{"unheard.of", "shout.1"}, "shout.1", "BIN:", true},
	} {
		synctest.Test(t, func(t *testing.T) {
			server, client := pair(t, Options{Subprotocols: []string{"shout.1"}, Recode: map[string]func([]byte) []byte{"shout.1": shout}}, Options{Subprotocols: tt.asks})
			if server.Subprotocol() != tt.agreed || client.Subprotocol() != tt.agreed {
				t.Errorf("%v: agreed on %q and %q, want %q", tt.asks, server.Subprotocol(), client.Subprotocol(), tt.agreed)
			}
			var got []heard
			done := make(chan error, 2)
			go func() { done <- server.Serve(t.Context(), nil) }()
			go func() {
				done <- client.Serve(t.Context(), func(b []byte, binary bool) { got = append(got, heard{string(b), binary}) })
			}()
			p := Prepare([]byte("prepared"))
			server.Send([]byte("sent"))
			server.SendCounted([]byte("counted"))
			server.SendPrepared(p)
			server.SendPrepared(p)
			server.SendBinary([]byte("as it is"))
			synctest.Wait()
			want := []heard{{tt.prefix + "sent", tt.binary}, {tt.prefix + "counted", tt.binary}, {tt.prefix + "prepared", tt.binary}, {tt.prefix + "prepared", tt.binary}, {"as it is", true}}
			if len(got) != len(want) {
				t.Fatalf("%v: got %v", tt.asks, got)
			}
			for i := range want {
				if got[i] != want[i] {
					t.Errorf("%v: frame %d is %v, want %v", tt.asks, i, got[i], want[i])
				}
			}
			client.Close(1000, "")
			<-done
			<-done
		})
	}
}
