package web

import (
	"bytes"
	"net/http"
	"net/url"
	"text/template"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// joinParam is the name of a key in the address of a socket, by kind (wire 1.3).
var joinParam = map[string]string{"collab": "key", "peer": "peerKey", "upstream": "upstreamKey"}

// joinWords say what an agent of a role does here.
var joinWords = map[string]string{
	"collab":   "You work for another project, on your own. Nobody here gives you orders and you give none: ask with `Request`, answer with `Response`, tell with `Report`.",
	"peer":     "You coordinate for another project. Nobody here gives you orders and you give none: ask with `Request`, answer with `Response`, tell with `Report`.",
	"upstream": "You may hand work to the main agent with `Delegate`, and it to you. Everybody else you ask with `Request`.",
	"local":    "You are a worker. Wait for `Delegate`, report with `WorkerReport` (`status` is in_progress, done or blocked, with a `summary`), and start nothing by yourself.",
}

// joinPage holds no secret but the key that its address holds already, and of a local key only where its file lies.
var joinPage = template.Must(template.New("join").Parse(`# Join this board as {{.Role}}

Connect a WebSocket to

    {{.Socket}}

Every message is one JSON object. After ` + "`SERVER_HELLO`" + ` say who you are:

    {"type":"HELLO","agentId":"{{.Agent}}","agentName":"a name for people","role":"{{.Role}}","protocolVersion":"0.3","capabilities":["ack-layer"]}

` + "`ConnectionInfo`" + ` says that you are in, ` + "`ConnectionRejected`" + ` why not and what to do. {{.Bound}}

- {{.Words}}
- What you send has a ` + "`msgId`" + ` of your own; the same one again is the same message. Without a target it goes to the main agent.
- What you get with a ` + "`msgId`" + ` you acknowledge once you have handled it: ` + "`" + `{"type":"CUSTOM","name":"AckProcessed","value":{"ackFor":"<its msgId>"}}` + "`" + `. What waits for you is given to you when you come back.
- After a close with 4003 or 4403 do not try again by yourself: the key is over, or it is not yours.
{{if .Ends}}- This key ends at {{.Ends}}.
{{end}}`))

type joinFields struct {
	Role, Socket, Agent, Bound, Words, Ends string
}

// join answers with a page for an agent that shall join. Whoever has the address has the key; nobody else learns whether
// there is one.
func (s *Server) join(w http.ResponseWriter, r *http.Request, _ Standing) {
	kind := r.PathValue("kind")
	if kind == "local" {
		s.joinLocal(w, r)
		return
	}
	param, ok := joinParam[kind]
	if !ok {
		refuse(w, protocol.Refuse(codeNoRoute, "there is nothing at this address", ""))
		return
	}
	secret := r.URL.Query().Get("key")
	k, err := s.backend.JoinKey(r.Context(), secret)
	if err == nil && k.Kind != kind {
		err = protocol.Refuse(protocol.CodeBadKey, "this key is not known here", "ask the board's owner for a key")
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Access-Control-Allow-Origin", "*")
	s.serveJoin(w, r, k, socketAt(r)+"?"+param+"="+url.QueryEscape(secret))
}

// joinLocal is for whoever is on this machine, and names the file that only the node's user reads (fault B31).
func (s *Server) joinLocal(w http.ResponseWriter, r *http.Request) {
	if !loopback(r) {
		refuse(w, protocol.Refuse(protocol.CodeKeyRemote, "this page is for the node's own machine", ""))
		return
	}
	k, file, err := s.backend.JoinLocal(r.Context(), r.URL.Query().Get("label"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.serveJoin(w, r, k, socketAt(r)+"?key=<what is in "+file+">")
}

func socketAt(r *http.Request) string {
	if r.TLS != nil {
		return "wss://" + r.Host + "/ws"
	}
	return "ws://" + r.Host + "/ws"
}

func (s *Server) serveJoin(w http.ResponseWriter, r *http.Request, k api.Key, socket string) {
	f := joinFields{Role: k.Kind, Socket: socket, Agent: "<an id of your choice>", Words: joinWords[k.Kind],
		Bound: "The id you choose now is yours for as long as this key lives."}
	if k.Bound != "" {
		f.Agent, f.Bound = string(k.Bound), "This key works for that id alone."
	}
	if k.Expires > 0 {
		f.Ends = time.UnixMilli(k.Expires).UTC().Format("2006-01-02 15:04 MST")
	}
	var page bytes.Buffer
	if err := joinPage.Execute(&page, f); err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/markdown; charset=utf-8")
	_, _ = page.WriteTo(w) // who went away hears nothing
}
