// Package bridge lets an agent that knows nothing but files take part: what it appends to its outbox.jsonl is said, and
// what is addressed to it appears in its inbox.jsonl, each exactly once over any crash (wire 6.1, with its faults mended).
// Package node calls it, giving it the two functions that commit a line with its cursor and read unread mail.
// It refuses links, devices, files of other users and lines that it cannot read in full, by name, and never guesses.
// Enable, Disable and Notify may be called from any goroutine; the files of an agent are touched only by Run's.
package bridge
