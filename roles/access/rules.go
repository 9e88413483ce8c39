package access

import (
	"bytes"
	"encoding/json"
	"io"
	"net/netip"
	"slices"
	"strings"

	"github.com/aster-mesh/aster/protocol"
)

// Surface is a door of the board.
type Surface string

const (
	UI    Surface = "ui"    // people: the page, its API, sockets without HELLO
	Agent Surface = "agent" // sockets that say HELLO
	MCP   Surface = "mcp"   // those whose HELLO lists mcp-proxy
)

const (
	// BytesMax bounds the document: three lists of EntriesMax entries have a tenth of it.
	BytesMax   = 64 << 10
	EntriesMax = 64 // of one list
	entryBytes = 64
)

// List is who may come in by one door, beside this machine itself. Nil: all private addresses; empty: nobody else.
type List []string

// Door is one surface in the document.
type Door struct {
	Allowlist List `json:"allowlist"`
}

// AgentDoor is the agents'.
type AgentDoor struct {
	Allowlist  List `json:"allowlist"`
	RequireKey bool `json:"requireKey"` // a HELLO from elsewhere needs a key, whatever else it was let in by
}

// Rules is the document access.json. The zero value lets in all private addresses.
type Rules struct {
	Expose *bool     `json:"expose,omitempty"` // what somebody believes of the board's address; nothing follows from it
	UI     Door      `json:"ui"`
	Agent  AgentDoor `json:"agent"`
	MCP    Door      `json:"mcp"`
}

// Closed lets in nobody but this machine.
func Closed() Rules {
	return Rules{UI: Door{List{}}, Agent: AgentDoor{Allowlist: List{}}, MCP: Door{List{}}}
}

// named are the ranges that an entry may call by name (wire 7.2).
var named = map[string][]netip.Prefix{
	"loopback":  prefixes("127.0.0.0/8", "::1/128"),
	"private":   prefixes("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"),
	"cgnat":     prefixes("100.64.0.0/10"),
	"linklocal": prefixes("169.254.0.0/16", "fe80::/10"),
	"ula":       prefixes("fc00::/7"),
}

// everyPrivate is what the names mean together.
var everyPrivate = slices.Concat(named["loopback"], named["private"], named["cgnat"], named["linklocal"], named["ula"])

func prefixes(texts ...string) (out []netip.Prefix) {
	for _, text := range texts {
		out = append(out, netip.MustParsePrefix(text))
	}
	return out
}

// Allows says whether somebody at addr may come in by a door. This machine may by each.
func (r *Rules) Allows(by Surface, addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	if addr.IsLoopback() {
		return true
	}
	list := r.UI.Allowlist
	switch by {
	case Agent:
		list = r.Agent.Allowlist
	case MCP:
		list = r.MCP.Allowlist
	}
	if list == nil {
		return within(everyPrivate, addr)
	}
	return slices.ContainsFunc(list, func(entry string) bool {
		in, no := ranges(entry)
		return no == nil && within(in, addr)
	})
}

// AllowsAny says whether some door is open to addr.
func (r *Rules) AllowsAny(addr netip.Addr) bool {
	return r.Allows(UI, addr) || r.Allows(Agent, addr) || r.Allows(MCP, addr)
}

func within(in []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(in, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// ranges is what one entry stands for.
func ranges(entry string) ([]netip.Prefix, *protocol.Refusal) {
	switch entry {
	case "all-private", "all", "*":
		return everyPrivate, nil
	}
	if in, ok := named[entry]; ok {
		return in, nil
	}
	p, err := netip.ParsePrefix(entry)
	if err != nil {
		addr, err := netip.ParseAddr(entry)
		if err != nil || addr.Zone() != "" {
			return nil, protocol.Refuse(protocol.CodeBadFrame, "%q is no address, no range and no name of one",
				"loopback, private, cgnat, linklocal, ula, all-private, an address, or a range such as 10.1.0.0/16", protocol.CutText(entry, entryBytes))
		}
		p = netip.PrefixFrom(addr, addr.BitLen())
	}
	if p.Addr().Is4In6() {
		return nil, protocol.Refuse(protocol.CodeBadFrame, "%q is an IPv4 address in IPv6 clothes", "write it as IPv4", protocol.CutText(entry, entryBytes))
	}
	p = p.Masked()
	if !slices.ContainsFunc(everyPrivate, func(all netip.Prefix) bool { return all.Bits() <= p.Bits() && all.Contains(p.Addr()) }) {
		return nil, protocol.Refuse(CodePublic, "%q reaches addresses that are not private: the board's words are not encrypted",
			"let other machines join the mesh, or put a proxy with TLS on this one", protocol.CutText(entry, entryBytes))
	}
	return []netip.Prefix{p}, nil
}

// Codes of refusals that this package gives, beside bad-frame.
const (
	CodePublic  = "public-address"
	CodeAddress = "ip-not-allowlisted"
)

// Parse reads the document: strictly, since an entry that was passed over would be a door that somebody believes shut.
func Parse(raw []byte) (Rules, *protocol.Refusal) {
	var r Rules
	if len(raw) > BytesMax {
		return r, protocol.Refuse(protocol.CodeFrameTooLarge, "access lists have at most %d bytes", "", BytesMax)
	}
	if len(bytes.TrimSpace(raw)) == 0 || bytes.Equal(bytes.TrimSpace(raw), []byte("null")) {
		return r, protocol.Refuse(protocol.CodeBadFrame, "access lists are a JSON object with ui, agent and mcp", "")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		return Rules{}, protocol.Refuse(protocol.CodeBadFrame, "access lists are not readable: %s", "", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := dec.Token(); err != io.EOF {
		return Rules{}, protocol.Refuse(protocol.CodeBadFrame, "something stands behind the access lists", "")
	}
	for _, list := range []List{r.UI.Allowlist, r.Agent.Allowlist, r.MCP.Allowlist} {
		if len(list) > EntriesMax {
			return Rules{}, protocol.Refuse(protocol.CodeBadFrame, "a list has at most %d entries", "", EntriesMax)
		}
		for _, entry := range list {
			if _, no := ranges(entry); no != nil {
				return Rules{}, no
			}
		}
	}
	return r, nil
}

// Encode is the document as Parse reads it.
func (r Rules) Encode() []byte {
	r.Expose = nil
	raw, _ := json.MarshalIndent(r, "", "  ") // cannot fail: texts and booleans
	return append(raw, '\n')
}

// Equal says whether both let in the same.
func (r *Rules) Equal(o *Rules) bool { return bytes.Equal(r.Encode(), o.Encode()) }
