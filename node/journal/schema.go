package journal

// schemaVersion is the user_version of journal.db. A store with a greater one is refused. The tables are
// those of version 1, which had nothing ahead of them; version 2 could not sign again what it found there, and version 3 knew no bases.
const schemaVersion = 4

// searchVersion is that of search.db. An index with another one is begun anew.
const searchVersion = 1

// applicationID marks the file as ours ("astj").
const applicationID = 0x6173746a

// The tables of journal.db. What a receipt speaks of may arrive after it (another log), so tiers name their message by
// log and seq, and a log row may stand at seq 0 until its first record comes.
//
// msgs holds what the queries filter by, so that no body is decoded for a message that is not returned. sender and
// target are folded ids (protocol.FoldAgentID). short is the message's 12-character short id, last character first, as
// a number: a short id of n characters is then a range of it.
const schema = `
CREATE TABLE meta(key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID;
CREATE TABLE logs(
	id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, seq INTEGER NOT NULL, hash BLOB NOT NULL);
CREATE TABLE records(
	pos INTEGER PRIMARY KEY, log INTEGER NOT NULL, seq INTEGER NOT NULL, prev BLOB NOT NULL, hash BLOB NOT NULL,
	at INTEGER NOT NULL, wall INTEGER NOT NULL, kind TEXT NOT NULL, sig BLOB, body BLOB NOT NULL);
CREATE UNIQUE INDEX records_log ON records(log, seq);
CREATE TABLE msgs(
	pos INTEGER PRIMARY KEY, sender TEXT, target TEXT, intent TEXT NOT NULL, re TEXT, thread TEXT,
	short INTEGER NOT NULL, at INTEGER NOT NULL, state INTEGER NOT NULL);
CREATE INDEX msgs_sender ON msgs(sender, pos) WHERE sender IS NOT NULL;
CREATE INDEX msgs_target ON msgs(target, pos) WHERE target IS NOT NULL;
CREATE INDEX msgs_intent ON msgs(intent, pos);
CREATE INDEX msgs_re ON msgs(re, pos) WHERE re IS NOT NULL;
CREATE INDEX msgs_thread ON msgs(thread, pos) WHERE thread IS NOT NULL;
CREATE INDEX msgs_short ON msgs(short);
CREATE INDEX msgs_open ON msgs(sender, pos) WHERE state = 0;
CREATE INDEX msgs_dead ON msgs(sender, pos) WHERE state = 2;
CREATE TABLE identities(
	id BLOB PRIMARY KEY, content BLOB NOT NULL, log INTEGER NOT NULL, seq INTEGER NOT NULL, pos INTEGER NOT NULL
	) WITHOUT ROWID;
CREATE TABLE inbox(
	key TEXT NOT NULL, pos INTEGER NOT NULL, agent TEXT NOT NULL, bytes INTEGER NOT NULL, state INTEGER NOT NULL,
	reason TEXT NOT NULL, PRIMARY KEY(key, pos)) WITHOUT ROWID;
CREATE INDEX inbox_unread ON inbox(key, pos, agent, bytes) WHERE state = 0;
CREATE TABLE tiers(
	log INTEGER NOT NULL, seq INTEGER NOT NULL, key TEXT NOT NULL, tier TEXT NOT NULL, agent TEXT NOT NULL,
	at INTEGER NOT NULL, wall INTEGER NOT NULL, by TEXT NOT NULL, reason TEXT NOT NULL,
	PRIMARY KEY(log, seq, key, tier)) WITHOUT ROWID;
CREATE TABLE tiers_early(log INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY(log, seq)) WITHOUT ROWID;
CREATE TABLE vals(key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
` + schemaBases

// schemaBases is what version 4 added. A snapshot is in parts, under the number of the Leave that brought it.
const schemaBases = `
CREATE TABLE IF NOT EXISTS bases(log INTEGER PRIMARY KEY, seq INTEGER NOT NULL, hash BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS snapshots(cut INTEGER NOT NULL, part INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY(cut, part));
`

// States of a message (msgs.state) and of an inbox row (inbox.state).
const (
	stateOpen      = 0 // neither processed nor refused
	stateProcessed = 1
	stateDead      = 2
	stateNone      = 3 // of msgs: for nobody in particular, or void (its intent is then empty), so nobody will process it
)
