// Package web serves a node's board: the HTTP API, the event streams, the upgrade of /ws, and the page with its files.
// Package node makes one Server over its Backend and mounts it on the board's listener; commands, pages and agents are
// its clients. It refuses every request whose Host, Origin, credential, method or size the one table in routes.go does
// not allow, before any handler runs, and it never shows what an internal error says. A Server may be used by any
// number of requests at once; it starts no goroutine, and keeps accounts, ended sessions and the hashes of open links.
//
// # Routes
//
// The API stands under /api/v1; all bodies are JSON of package api, all errors are api.Error. Who may call: S a
// browser's session, T the token of node.json, S+T either.
//
//	GET  status, peers, agents, snapshot, tasks, tasks/{id}          S+T
//	GET  events?since=POS                                            S+T  server-sent; id is the event's Pos; Last-Event-ID
//	                                                                      continues; a status event follows every 5 s
//	POST send                                                        S+T  api.SendRequest; a session always speaks as the person
//	GET  messages?agent=&intent=&before=&after=&since=MS&limit=      S+T  {"messages":[…]}, oldest first
//	GET  messages/{id}?wait=TIER&timeout=DURATION                    S+T  408 when the tier is not reached in time
//	GET  messages/{id}/thread, messages/{id}/proof                   S+T  api.Thread, api.Proof
//	GET  find?q=&agent=&role=&intent=&thread=&task=&room=&before=    S+T  api.Found: a stretch that words and filters select,
//	         &after=&at=MS&limit=                                         with where to go on
//	GET  asks, health, figures, rooms, document                      S+T  api.Asks, api.Health, api.Figures, {"rooms":[api.Room…]}, api.StateDocument
//	GET  search?q=WORDS&before=POS&limit=                            S+T  {"messages":[…]}
//	GET  tail?agent=&intent=&since=MS&after=POS&follow=0             S+T  NDJSON of api.Event: message, and tiers of those shown
//	GET  inbox?agent=&all=1&dead=1&after=POS&limit=&follow=1         T    {"items":[…]}; with follow NDJSON of api.InboxItem
//	GET  outbox?agent=&dead=1                                        T    {"messages":[…]}
//	POST ack                                                         T    api.AckRequest; api.AckResult
//	GET  wait?agent=&timeout=DURATION                                T    api.WaitResult, or 408; not a byte in between
//	POST tasks/{id}/cancel                                           S+T  api.Task
//	GET  invites                                                     S+T  {"invites":[api.InviteRow…]}
//	POST invites, invites/{id}/withdraw                              S+T  api.InviteRequest; api.InviteResult
//	POST members/{peer}/renew, members/{peer}/revoke                 S+T  revoke takes {"reason"}
//	GET  keys?all=1                                                  S+T  {"keys":[api.Key…]}
//	POST keys                                                        S+T  api.KeyRequest; api.KeyIssued, the only answer with a string
//	POST keys/{ref}/renew, label, revoke                             S+T  api.KeyRenewRequest, KeyLabelRequest, KeyRevokeRequest
//	POST leave                                                       T
//	POST agents/{id}/forget, agents/{id}/rename                      T    rename takes api.RenameRequest; api.Agent
//	POST agents/{id}/move                                            T    takes api.MoveRequest; api.Moved
//	PUT  blobs?name=&mime=&sha256=, blobs/{sha256}                   S+T  any bytes, at most 64 MiB; protocol.BlobRef
//	PUT  blobs/{sha256} with Content-Range: bytes A-B/SIZE           S+T  a piece; 202 and api.Upload until it is whole; "bytes */SIZE"
//	                                                                      without a body asks how far it is
//	GET  messages/{id}/attachments/{sha256}                          S+T  what that message names, always as bytes to save; Range and
//	                                                                      If-None-Match hold
//	GET  blobs/{sha256}                                              T    the same for a hash alone
//	POST board-link                                                  T    {"url"}: opens the board once, within 10 minutes
//	POST sign-out-all                                                T    ends every session, and what it holds open
//	GET  store, POST store/repair                                    T    api.StoreHealth
//	POST store/compare                                               T    api.Compared: the members compare their boards now
//	POST store/copy                                                  T    api.StoreCopy: a copy of the store in a folder of the home
//	POST down                                                        T    202; the node stops after answering
//
// Beside it: GET /open/{ticket} (uses a link, sets the session), GET /healthz and /readyz (nothing but "ok"), GET /ws
// (the upgrade; the Backend applies the socket's own rules to the Caller found here), GET /join/{collab,upstream,peer}?key=
// (how to join with a key, as Markdown; 403 unless it is valid), GET /join/local?label= (from this machine alone), GET / and its views /t/ID, /m/ID, /a/ID, /n/ID, /mesh, /settings, and the page's files (S),
// and the old contract: GET /api/state, GET /api/events (S+T), GET /api/whoami (anyone), POST /api/feedback (S).
// People's accounts: GET and POST /api/operators, DELETE /api/operators/{id} (T), POST /api/login (anyone, {"id","password"}),
// POST /api/logout (S). Once there is one, nobody is let in for being on this machine.
// Web push: GET /api/push/{vapid-public-key,latest}, POST /api/push/{subscribe,unsubscribe,seen} (S); a subscription is its
// session's, and ends with it.
//
// Of the durations, "30s" and "5m" are read as Go does; without one, wait lasts an hour and messages/{id} 30 s.
// Codes beyond protocol's: "no-credential" 401, "wrong-host", "wrong-origin", "cross-site" 403, "token-in-url" 400,
// "no-such-route" 404, "wrong-method" 405, "timed-out" 408, "link-used" 410, "wrong-type" 415, "locked" 429, "internal" 500,
// "not-ready" 503.
package web
