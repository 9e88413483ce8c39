// Package client speaks to a running node through its HTTP API, one method a route, with the types of protocol/api.
// The commands of cmd/aster, its demo and the acceptance tests call it. It refuses to guess: what the node refuses comes
// back as the node's own *protocol.Refusal, an absent node as ErrNotRunning, a timeout of the node's as ErrTimedOut.
// A Client may be used by any number of goroutines; it starts no timers and keeps no state but idle connections.
package client
