// Package access is which addresses of a network a node's board answers: one list for people, one for agents, one for
// agents that come through a plugin, and whether an agent from elsewhere needs a key. The board asks it before every
// request and upgrade, the node at every HELLO and again when the lists change. It refuses lists that would open the node
// to the world, and knows neither sockets nor files. Rules do not change: any number of goroutines may ask them.
package access
