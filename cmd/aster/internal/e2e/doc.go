// Package e2e holds the acceptance tests of aster: the whole binary, as people and agents meet it, in real processes.
// go test calls it, and nothing else does: the tests build the binary once and drive it by its command line, its HTTP
// API, its sockets and kill -9. It refuses to look inside: what a test knows comes out of the program or off its disk.
// Its tests share no node and no home; each ends what it started, and prints every node's log when it fails.
package e2e
