// Package foreign is what a well-behaved client of the contract knows at a board that is not ours: how it introduces one
// agent, what each frame that comes means for that agent, whom it finds there, and when to come back after an end.
// The node's shell calls it for each connection of `aster join-board`, and acts on the events that it returns.
// It refuses to believe a board: who speaks there is an agent called NAME@BOARD here, history is never mail, and whoever is
// a guest there itself is nobody's agent here. A Session, a Names and a Backoff belong to one goroutine each.
package foreign
