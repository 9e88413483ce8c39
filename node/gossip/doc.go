// Package gossip says which inside nodes of the mesh are up: memberlist, carried by streams that somebody else opens
// and authenticates. Package node starts it, gives it the mesh's streams and hears what changes. It refuses nodes that
// are not inside members, and nothing it tells carries authority: it is a hint who is there, never who may do what. All
// methods of Gossip may be called from any goroutine; OnChange comes from Run alone.
package gossip
