// Package hub is the relaying part of a node as a pure state machine: who is attached, whose mail waits where, what
// each input owes to the log, to sockets and to peers. The node's loop calls Step for every input, makes what Ready
// lists durable, and only then lets it out. It refuses to touch the world: no bytes of frames, no connections, no
// clock; it cannot fail, since bad input yields a Refusal as data. Not safe for concurrent use: the loop owns it.
package hub
