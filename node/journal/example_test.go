package journal_test

import (
	"crypto/ed25519"
	"fmt"
	"os"

	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
)

func Example() {
	dir, err := os.MkdirTemp("", "journal")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	j, err := journal.Open(dir, journal.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer j.Close()

	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	log := protocol.LogID{Peer: protocol.PeerIDOf(key.Public().(ed25519.PublicKey)), Start: protocol.Start{At: 1, Rand: 1}, Scope: protocol.ScopeInside}
	env := &protocol.Envelope{ID: "m1", From: "anna", To: "ben", Source: protocol.SourceAgent, Intent: "Note", Value: []byte(`{"text":"the build failed"}`)}
	r := protocol.Record{Log: log, Seq: 1, At: 1, Kind: protocol.KindMessage, Body: protocol.EncodeBody(env)}
	r.Sign(key)
	// The message and its place in ben's inbox: both or neither.
	pos, err := j.Commit(journal.Batch{
		Entries: []journal.Entry{{Record: r, Hash: r.Hash(), Envelope: env}},
		Inbox:   []journal.InboxPut{{Agent: "ben", Log: log, Seq: 1}},
	})
	fmt.Println(pos, err)
	unread, err := j.Unread()
	fmt.Println(unread["ben"].Items, err)
	found, err := j.Search("build fail", 0, 10)
	fmt.Println(len(found), found[0].Envelope.ID, err)
	// Output:
	// 1 <nil>
	// 1 <nil>
	// 1 m1 <nil>
}
