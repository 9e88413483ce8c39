// Package replica decides what nodes tell each other of their logs: when to compare, what to push, pass on, serve and
// ask for. The node's loop calls it with what happened and does what Ready says, in that order; the records themselves
// stay in the journal. It refuses ranges that do not follow what is held, that lie beyond a cut or that this node may
// not see, and sends nobody what they may not see. Not safe for concurrent use: the node's loop owns it.
package replica
