// Package keys is the whole life of the contract's keys: what a key string is, who may be issued one, to which agent it
// is bound, when it ends. The node asks it before an upgrade or a HELLO is accepted, for every key verb, and folds the
// records of kind key into its Ring through the board. It refuses to know the strings themselves beyond their hash, and
// sockets, files, clocks and dice: time and random bytes are arguments. Its functions may be called from any number of
// goroutines; a Ring belongs to one, the node's loop.
package keys
