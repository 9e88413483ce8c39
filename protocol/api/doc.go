// Package api holds the requests and answers of aster's HTTP API, version 1 (/api/v1, JSON), as plain values. The
// board's handlers serve them, the command line and the page read them. It knows no sockets and no defaults of the
// node, and imports only protocol and the standard library. Values are copied freely; nothing is shared.
package api
