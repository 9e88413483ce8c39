// Package sim runs whole meshes of 3 to 16 nodes, made of the real pure cores, by one seeded loop on one goroutine over
// a model disk: links, disks, clocks, processes and clients fail by seed, and after every settle the promises are
// checked. Tests are its only callers, nothing in the binary imports it, and the journal's own tests hold the real store
// to the same contract as the model. It refuses what would make two runs of a seed differ: a clock, a die of the
// system's, the order of a map. A World belongs to the goroutine that runs it; many may run at once.
package sim
