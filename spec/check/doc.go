// Package check runs the vectors of package spec against any hub at a ws:// address, over a small WebSocket client of its
// own that can also say what no honest client says. Command aster check calls it, and so do the tests of nodes and hubs.
// It refuses nothing of a hub: what does not hold is reported by rule, with the frame. It is for a hub that nobody works
// on, since it joins as the main agent. A Run owns all its connections; several may go on at once against different hubs.
package check
