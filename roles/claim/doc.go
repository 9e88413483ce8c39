// Package claim decides who holds what for itself alone: path prefixes and named contracts, with leases. The node's loop
// keeps a Granter while its node is main, and a Holder always. It refuses what overlaps another's claim, and everything new
// for as long as a claim of a former main may still be held that is not known here. Not safe for concurrent use: the loop
// owns both; moments are arguments, and nothing leaves before the records that Granter returns are durable.
package claim
