// Package journal keeps a node's logs, inboxes, receipts and large bodies on disk: what Commit returned nil for is on
// stable storage and comes back after any crash, and what it returned an error for is not half there. Package node is
// its only caller: the loop commits, and hub, board and web pages are answered from its queries. It refuses records
// that leave a gap or break a chain, writes beyond its size, stores of a newer schema and damaged bytes, which it never
// serves. Queries may be called from any goroutine at any time; Commit, which alone writes, is serialized inside.
package journal
