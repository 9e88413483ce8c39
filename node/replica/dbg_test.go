package replica
import ("testing";"time";"strings")
func TestDbg(t *testing.T){
	w := newWorld(t, 1, 5, 0)
	for a := range 4 { for b := range a { w.up(a, b) } }
	w.run(time.Second)
	for round := range 12 { for _, n := range w.nodes[:4] { for range 10 { n.write("in", 5, 4000) } }; w.run(time.Second)
 if round < 8 { n := w.nodes[round%4]; for b := range 4 { w.down(n.at, b) }; n.boot(); for b := range 4 { w.up(n.at, b) } } }
	w.run(20 * time.Second)
	w.trace=nil
	t0:=w.now
	for b := range 4 { w.up(4, b) }
	s,tk:=w.sent,w.taken
	w.run(20 * time.Second)
	t.Log(w.sent-s,w.taken-tk,t0.Format("05.000"))
	for i,l:=range w.trace { if i<120 && strings.Contains(l,"->") {t.Log(l)} }
}
