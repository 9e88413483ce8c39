package node

// reopenLAN opens this machine's networks again if invite --lan once did. Whoever names loopback alone takes that back.
func (n *Node) reopenLAN() error {
	m := &n.home.mesh
	if m.LAN && len(n.cfg.Mesh) > 0 && loopbackOnly(n.cfg.Mesh) {
		m.LAN = false
		return n.home.saveMesh()
	}
	if m.LAN {
		if err := n.mesh.OpenLAN(); err != nil {
			n.warnings.set("lan", "not every network of this machine could be opened: "+err.Error())
		}
	}
	return nil
}
