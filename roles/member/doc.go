// Package member says who belongs to a mesh: its key, the certificates that issuers sign, one-time invites, and the
// roster that is folded from the records of admission and revocation. The node calls it at the connection gate, at
// admission, and for every record of membership that it applies. It refuses to know sockets, files, clocks and dice:
// the time, and the reader that random bytes come from, are arguments. Its functions may be called from any number of
// goroutines; a Roster belongs to one, the node's loop.
package member
