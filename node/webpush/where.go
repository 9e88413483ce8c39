package webpush

import (
	"net/netip"
	"net/url"
	"regexp"
	"strings"

	"github.com/aster-mesh/aster/protocol"
)

// endpointBytesMax: the longest that services give have some 700 bytes.
const endpointBytesMax = 2048

// serviceName is a name in the public DNS: letters, digits and hyphens in two labels or more, the last of which is no number.
var serviceName = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)

// inside are the last labels that stand for the own machine or network.
var inside = []string{"localhost", "local", "internal", "intranet", "lan", "home", "corp", "private", "home.arpa", "onion", "invalid", "test"}

// checkEndpoint refuses what cannot be the address of a browser maker's push service.
func checkEndpoint(endpoint string) (*url.URL, *protocol.Refusal) {
	no := func(why string) (*url.URL, *protocol.Refusal) {
		return nil, protocol.Refuse(protocol.CodeNotAllowed, "this address is not one of a public push service: "+why, "")
	}
	if len(endpoint) > endpointBytesMax {
		return no("it is too long")
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Opaque != "" {
		return no("it is no URL")
	}
	host := strings.ToLower(u.Hostname())
	switch {
	case u.Scheme != "https":
		return no("it is not https")
	case u.User != nil || u.Fragment != "":
		return no("it holds a user or a fragment")
	case u.Port() != "" && u.Port() != "443", strings.HasSuffix(u.Host, ":"):
		return no("it is not at port 443")
	case len(host) > 253 || !serviceName.MatchString(host):
		return no("it has no name in the public DNS")
	}
	for _, end := range inside {
		if strings.HasSuffix("."+host, "."+end) {
			return no("it is in the own network")
		}
	}
	return u, nil
}

// reserved are networks that are not the public Internet beyond those that netip itself knows.
var reserved = prefixes("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
	"224.0.0.0/3", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")

var (
	global     = netip.MustParsePrefix("2000::/3")
	translated = netip.MustParsePrefix("64:ff9b::/96") // an address of IPv4 behind a translator
)

func prefixes(all ...string) (out []netip.Prefix) {
	for _, p := range all {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}

// public says whether an address is one of the public Internet.
func public(a netip.Addr) bool {
	if !a.IsValid() || a.Zone() != "" {
		return false
	}
	a = a.Unmap()
	if translated.Contains(a) {
		b := a.As16()
		return public(netip.AddrFrom4([4]byte(b[12:])))
	}
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.Is6() && !global.Contains(a) {
		return false
	}
	for _, p := range reserved {
		if p.Contains(a) {
			return false
		}
	}
	return true
}
