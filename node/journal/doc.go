// Package journal keeps a node's logs, inboxes, receipts and large bodies on disk: what Commit returned nil for is on
// stable storage, first in a file ahead of the database and then in that, and comes back after any crash; what it returned an
// error for is not half there, and every query sees all that was committed before it. Package node is
// its only caller: the loop commits, and hub, board and web pages are answered from its queries. It refuses records
// that leave a gap or break a chain, writes beyond its size, stores of a newer schema and damaged bytes, which it never
// serves. Queries may be called from any goroutine at any time; Commit, which alone writes, is serialized inside and waits for no query.
package journal
