// Package node is where the parts meet: one process that holds a home, a journal, a hub, links to peers and a board.
// cmd/aster calls Run once a process. It decides nothing that a pure package decides: its loop takes what waits, asks
// hub and replica what follows, makes that durable with one sync, and only then lets anything out. Run may be called
// several times in one process with different homes (tests do); each owns all its goroutines and ends them.
package node
