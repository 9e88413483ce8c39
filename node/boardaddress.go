package node

import (
	"net"
	"net/url"
	"strings"

	"github.com/aster-mesh/aster/node/foreign"
	"github.com/aster-mesh/aster/protocol"
)

// boardAddress completes the address of a board: ws or wss (http and https mean the same), the path /ws unless it has another.
// A key or password in it is refused: an address is shown and kept in the shell's history.
func boardAddress(raw string) (string, *protocol.Refusal) {
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil || u.Host == "" || u.Hostname() == "" {
		return "", protocol.Refuse(protocol.CodeBadFrame, "this is no address of a board", "give one like ws://host:7878/ws")
	}
	switch u.Scheme {
	case "http":
		u.Scheme = "ws"
	case "https":
		u.Scheme = "wss"
	case "ws", "wss":
	default:
		return "", protocol.Refuse(protocol.CodeBadFrame, "a board's address begins with ws:// or wss://, not %s", "give one like ws://host:7878/ws", protocol.CutText(u.Scheme, 20)+"://")
	}
	if u.User != nil {
		return "", protocol.Refuse(protocol.CodeBadFrame, "the address holds a password", "give the address alone")
	}
	for _, name := range keyParams {
		if u.Query().Has(name) {
			return "", protocol.Refuse(protocol.CodeBadFrame, "the address holds a key", "give the address alone, and the key with --key - or --key FILE")
		}
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/ws"
	}
	u.Fragment, u.RawFragment = "", ""
	u.Host = strings.ToLower(u.Host)
	return u.String(), nil
}

var keyParams = []string{"key", "peerKey", "upstreamKey", "collabKey", "token"}

// withKey is an address with a key where the contract wants it: for peers and upstreams by their own name.
func withKey(address, key string) string {
	u, err := url.Parse(address)
	if err != nil || key == "" {
		return address
	}
	name := "key"
	switch {
	case strings.HasPrefix(key, "pk-"):
		name = "peerKey"
	case strings.HasPrefix(key, "uk-"):
		name = "upstreamKey"
	}
	q := u.Query()
	q.Set(name, key)
	u.RawQuery = q.Encode()
	return u.String()
}

// boardLabel is what a board is called for want of a better name: its host, with the port unless it is the usual one.
func boardLabel(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "board"
	}
	label := u.Hostname()
	if p := u.Port(); p != "" && p != "7878" {
		label = net.JoinHostPort(label, p)
	}
	return foreign.Label(label)
}
