// Package turn is what a turn of the loop decides without acting: what an arrived range becomes, what a commit holds, what
// replication says to whom, and what the office and its claims owe. Package node and its simulation call it, so that both
// do the same. It refuses to do anything itself: a store is asked through an interface, and what is to be sent, signed or
// kept is returned. Not safe for concurrent use: everything here belongs to the loop that calls it.
package turn
