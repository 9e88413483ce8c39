// Package demo is a mesh to look at: four nodes of this very program on loopback, a small git repository, and work that
// really runs in it. cmd/aster's demo command and the tests that type its transcript call it. It refuses to pretend:
// nodes are processes with homes of their own, invites are redeemed, and what the repository's check says is what counts.
// A Mesh belongs to one goroutine; Stop may be called once, after all others.
package demo
