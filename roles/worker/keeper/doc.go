// Package keeper is the small process that stands over one run of a Delegate and outlives the node: it starts the
// command once, feeds it the task, keeps its output and its limits, ends whatever it forked, commits what it left, runs
// the accept commands and writes one result, whole or not at all. cmd/aster's hidden subcommand calls Main; roles/worker
// starts that process and reads its files through the functions here. It refuses a second run of one attempt folder,
// whoever asks and whenever, and it opens no socket and knows nothing of the node. Main is called once a process; the
// file functions may be called from any goroutine and process.
package keeper
