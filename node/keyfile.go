package node

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
	"github.com/aster-mesh/aster/roles/keys"
)

const localKeys = "local-keys"

// localKeyFile is where a local key lies, from the home. The label was checked: it is a file's name and no path.
func localKeyFile(label string) string { return localKeys + "/" + label + ".key" }

func (n *Node) localKeyPath(label string) string {
	return n.home.path(filepath.Join(localKeys, label+".key"))
}

// localKeyHash is the hash of the key in a label's file; zero when there is none.
func (n *Node) localKeyHash(label string) (h keys.Hash) {
	if !keys.LabelOK(keys.Local, label) {
		return h
	}
	f, err := os.Open(n.localKeyPath(label))
	if err != nil {
		return h
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, 256))
	if err != nil {
		return h
	}
	return keys.HashOf(strings.TrimSpace(string(raw)))
}

// localKeyInFile is the key whose file a new local key would replace.
func (n *Node) localKeyInFile(in keys.Issue) (h keys.Hash, err error) {
	if in.Kind != keys.Local {
		return h, nil
	}
	label := in.Label
	if label == "" {
		label = string(keys.Local)
	}
	if err := os.MkdirAll(n.home.path(localKeys), 0o700); err != nil {
		n.log.Error("folder of local keys not made", "err", err)
		return h, protocol.Refuse(keys.CodeFile, "the folder of local keys could not be made", "aster logs says why")
	}
	return n.localKeyHash(label), nil
}

// writeLocalKey puts a key where only the node's user reads it, whole or not at all.
func (n *Node) writeLocalKey(label, secret string) error {
	path := n.localKeyPath(label)
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // 0600
	if err != nil {
		return fmt.Errorf("write local key: %w", err)
	}
	_, err = f.WriteString(secret + "\n")
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write local key: %w", err), removeIfThere(f.Name()))
	}
	return nil
}

func (n *Node) moveLocalKey(from, to string) error {
	if err := os.Rename(n.localKeyPath(from), n.localKeyPath(to)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

const joinURLsMax = 12

// joinURLs are the addresses under which this board can be reached, loopback first: where it is bound, whether others
// reach it there, and each address of this machine with whether it answers.
func (n *Node) joinURLs(scheme, rest string) (bind string, exposed bool, out []asterism.JoinURL) {
	u, err := url.Parse(n.boardURL)
	if err != nil {
		return "", false, nil
	}
	bind = u.Hostname()
	ip := net.ParseIP(bind)
	exposed = ip != nil && !ip.IsLoopback()
	add := func(host, scope, iface string, reachable bool) {
		if len(out) < joinURLsMax {
			at := net.JoinHostPort(host, u.Port())
			out = append(out, asterism.JoinURL{Host: at, Scope: scope, Iface: iface, URL: scheme + "://" + at + rest, Reachable: reachable})
		}
	}
	add("localhost", "loopback", "loopback", !exposed || ip.IsUnspecified())
	faces, err := net.Interfaces()
	if err != nil {
		return bind, exposed, out
	}
	for _, face := range faces {
		addrs, err := face.Addrs()
		if err != nil || face.Flags&net.FlagUp == 0 {
			continue
		}
		for _, a := range addrs {
			ipn, ok := a.(*net.IPNet)
			if !ok || ipn.IP.IsLoopback() || ipn.IP.IsLinkLocalUnicast() {
				continue
			}
			scope := "lan"
			if ipn.IP.To4() == nil {
				scope = "lan6"
			}
			add(ipn.IP.String(), scope, face.Name, exposed && (ip.IsUnspecified() || ip.Equal(ipn.IP)))
		}
	}
	return bind, exposed, out
}
