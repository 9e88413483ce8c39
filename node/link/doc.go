// Package link is one WebSocket: a read loop, a write loop, and a bounded queue before the socket. The board's listener
// upgrades requests with it and client commands dial with it; what the frames mean is not its business. It refuses frames
// above the limit, text that is not UTF-8, and peers that read too slowly or are silent, each with its close code.
// A Conn's Serve is called once; Send, Cork, Uncork, Close and Authenticated may be called from any goroutine and never block.
package link
