// Package meshwire turns what two nodes say to each other into frames and back: four bytes of length, one byte of type,
// one msgpack map with short names. The shell of a link (node/mesh, through node) calls it with bytes from a peer and
// with values of our own. It refuses, naming what is wrong, any body that is too long, too deep, too wide, truncated,
// not UTF-8 or not of the frame's shape, before anything is allocated for it; a type it does not know is Unknown, and
// unknown keys are skipped. It keeps no state, so any number of goroutines may call it at once.
package meshwire
