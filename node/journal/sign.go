package journal

import (
	"errors"
	"fmt"

	"github.com/aster-mesh/aster/protocol"
)

// A commit's signature covers the hash of its last record and is needed by others, not by the disk: so it is made beside
// the write and the sync, which take longer. What a crash leaves in the files ahead of the database is signed again by the
// next start. Ed25519 has one signature for each key and message, so it is the same one, wherever the first had got to.

// Signer sets r.Sig, of which h is the hash, if it has the key of r's author. Safe for concurrent use.
type Signer func(r *protocol.Record, h protocol.Hash)

// owedSig stands in a frame for a signature that is made while the frame is written. No signature is of that length.
var owedSig = []byte{0}

// framedSig is what a frame holds as the record's signature: while one is made, Record.Sig is not to be read.
func (e *Entry) framedSig() []byte {
	if e.Sign {
		return owedSig
	}
	return e.Record.Sig
}

// raise gives a store of an earlier version this one's tables and number. One that finds no room for that stays
// one that the earlier version opens, so nothing may be written that it would misread: it takes the mark for a signature.
func (j *Journal) raise(c *conn, version int64) error {
	j.former = false
	if version <= 0 || version >= schemaVersion {
		return nil
	}
	err := inTransaction(c, func() error {
		return errors.Join(c.db.Exec(schemaBases), c.db.Exec(fmt.Sprintf("PRAGMA user_version=%d", schemaVersion)))
	})
	if j.former = isFull(err); j.former {
		return nil
	}
	return err
}

// signBeside begins to sign what c owes, or signs it before anything is written if the mark may not be; done returns when that is over.
func (j *Journal) signBeside(c *accepted) (done func()) {
	if c.unsigned == 0 {
		return func() {}
	}
	sign := func() {
		for i := range c.b.Entries {
			if e := &c.b.Entries[i]; e.Sign {
				j.opts.Sign(&e.Record, e.Hash)
			}
		}
	}
	if j.former {
		sign()
		for i := range c.b.Entries {
			c.b.Entries[i].Sign = false
		}
		return func() {}
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		sign()
	}()
	return func() { <-over }
}

// signAgain signs what was committed and not signed when the process ended.
func (j *Journal) signAgain(b *Batch) {
	for i := range b.Entries {
		e := &b.Entries[i]
		if !e.Sign {
			continue
		}
		e.Sign = false
		if j.opts.Sign != nil {
			j.opts.Sign(&e.Record, e.Hash)
		}
		if len(e.Record.Sig) == 0 { // it is handed on to nobody then, as is what follows it up to the next signature
			j.log.Warn("a record of a former start is not signed, and its key is not here", "log", e.Record.Log.String(), "seq", e.Record.Seq)
		}
	}
}
