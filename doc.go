// Package aster is the root of the module and holds nothing to call: the program is cmd/aster, its parts are in the
// folders beside it, and ARCHITECTURE.md is their map. Its tests are the rules of the house, checked on every source
// file: who imports whom, what the pure packages do without, how long things may be, and that the map is true.
// go test runs them; they read files and nothing else, and need no network.
package aster
