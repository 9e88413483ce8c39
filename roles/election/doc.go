// Package election decides who is main: terms, votes, voters, hand-over and what a main may still do that hears nobody.
// The node's loop calls Step for every message and tick, makes what Ready lists durable, and only then lets its messages
// out. It refuses to know a network, a disk, a clock or dice: moments and random numbers come in as arguments, and a
// foreign message can at most be answered with no. Not safe for concurrent use: the loop owns it.
package election
