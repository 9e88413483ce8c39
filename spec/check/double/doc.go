// Package double holds a small hub of the contract with known faults that can be switched on one by one. Its tests, which are
// all that there is, play the vectors against it: with none on every rule holds, and with one on the runner names that one. It
// keeps nothing beyond its life. A node joins it, too, as a client. Nobody calls it; its tests may run concurrently, each with
// a hub of its own.
package double
