package mesh

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/aster-mesh/aster/protocol"
)

// The service under which nodes announce themselves to a network by multicast DNS (RFC 6762, RFC 6763): a pointer to a
// name that begins with the peer id, and a text with one multiaddr a string.
const (
	mdnsService    = "_aster._udp.local."
	mdnsAddrPrefix = "addr="
	mdnsTTL        = 120  // seconds
	mdnsBytesMax   = 1400 // one packet of ours; it stays below any network's own limit
	mdnsRecordsMax = 64   // looked at in one packet
	mdnsAddrsMax   = 4    // of one peer
)

// sighting is what an announcement says of one node.
type sighting struct {
	peer  protocol.PeerID
	addrs []string
}

// mdnsQuestion asks who is there.
func mdnsQuestion() ([]byte, error) {
	return (&dnsmessage.Message{Questions: []dnsmessage.Question{
		{Name: dnsmessage.MustNewName(mdnsService), Type: dnsmessage.TypePTR, Class: dnsmessage.ClassINET},
	}}).Pack()
}

// mdnsAnnouncement says where a node is.
func mdnsAnnouncement(self protocol.PeerID, addrs []string) ([]byte, error) {
	name, err := dnsmessage.NewName(string(self) + "." + mdnsService)
	if err != nil {
		return nil, fmt.Errorf("announce %s: %w", self, err)
	}
	var txt dnsmessage.TXTResource
	size := 0
	for _, a := range addrs {
		if s := mdnsAddrPrefix + a; len(s) < 256 && len(txt.TXT) < mdnsAddrsMax && size+len(s) < mdnsBytesMax/2 {
			txt.TXT, size = append(txt.TXT, s), size+len(s)
		}
	}
	head := func(n dnsmessage.Name, t dnsmessage.Type) dnsmessage.ResourceHeader {
		return dnsmessage.ResourceHeader{Name: n, Type: t, Class: dnsmessage.ClassINET, TTL: mdnsTTL}
	}
	raw, err := (&dnsmessage.Message{
		Header: dnsmessage.Header{Response: true, Authoritative: true},
		Answers: []dnsmessage.Resource{
			{Header: head(dnsmessage.MustNewName(mdnsService), dnsmessage.TypePTR), Body: &dnsmessage.PTRResource{PTR: name}},
			{Header: head(name, dnsmessage.TypeTXT), Body: &txt},
		},
	}).Pack()
	if err != nil {
		return nil, fmt.Errorf("announce %s: %w", self, err)
	}
	return raw, nil
}

// readMDNS reads a packet of anybody's: whether it asks for us, and whom it announces. What is not ours is passed over.
func readMDNS(raw []byte) (asks bool, seen []sighting) {
	var p dnsmessage.Parser
	head, err := p.Start(raw)
	if err != nil {
		return false, nil
	}
	for range mdnsRecordsMax {
		q, err := p.Question()
		if err != nil {
			break
		}
		if !head.Response && strings.EqualFold(q.Name.String(), mdnsService) && (q.Type == dnsmessage.TypePTR || q.Type == dnsmessage.TypeALL) {
			asks = true
		}
	}
	if !head.Response || p.SkipAllQuestions() != nil {
		return asks, nil
	}
	for range mdnsRecordsMax {
		h, err := p.AnswerHeader()
		if err != nil {
			break
		}
		label, ours := cutService(h.Name.String())
		if h.Type != dnsmessage.TypeTXT || !ours {
			if p.SkipAnswer() != nil {
				break
			}
			continue
		}
		txt, err := p.TXTResource()
		if err != nil {
			break
		}
		if s := sightingOf(label, txt.TXT); len(s.addrs) > 0 {
			seen = append(seen, s)
		}
	}
	return false, seen
}

func cutService(name string) (label string, ours bool) {
	at := len(name) - len(mdnsService) - 1
	if at <= 0 || name[at] != '.' || !strings.EqualFold(name[at+1:], mdnsService) {
		return "", false
	}
	return name[:at], true
}

func sightingOf(label string, texts []string) sighting {
	s := sighting{peer: protocol.PeerID(label)}
	if _, err := s.peer.PublicKey(); err != nil {
		return sighting{}
	}
	for _, t := range texts {
		a, ok := strings.CutPrefix(t, mdnsAddrPrefix)
		if _, err := parseAddr(a); ok && err == nil && len(s.addrs) < mdnsAddrsMax && !slices.Contains(s.addrs, a) {
			s.addrs = append(s.addrs, a)
		}
	}
	return s
}

// at leaves the addresses of a sighting that have the address it was heard from: whoever announces itself cannot make us
// knock at another's door.
func (s sighting) at(from netip.Addr) []string {
	return slices.DeleteFunc(slices.Clone(s.addrs), func(a string) bool {
		parsed, err := parseAddr(a)
		return err != nil || ipOf(parsed) != from.Unmap()
	})
}
