// Package protocol holds the values that every part of aster shares: envelopes, records, ids, intents, tiers,
// refusals and limits, with what makes each of them valid. Every other package may import it and it imports only
// the standard library. It refuses to know sockets, files, clocks or dice: ids and times come in as arguments.
// Its values are plain data; whoever holds one may copy it, and nothing here is shared between goroutines.
package protocol
