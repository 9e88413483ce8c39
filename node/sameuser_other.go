//go:build !linux

package node

import "net/http"

// sameUser: this system is not asked yet whose socket it is, so nobody is taken at their word; clients show the token.
func sameUser(*http.Request) bool { return false }
