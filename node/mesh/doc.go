// Package mesh keeps authenticated links to the other nodes of a mesh, over libp2p: one long-lived stream of opaque
// frames a peer, and short streams for blobs and gossip. Package node starts it, tells it whom to keep linked and who
// is a member, and gets frames through callbacks. It refuses everybody who is not a member, but for one bounded
// request for admission, and it decides nothing about what a frame means. All methods of Mesh may be called from any
// goroutine; callbacks of one link come one at a time, those of different links at once.
package mesh
