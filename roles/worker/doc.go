// Package worker runs Delegates on this machine: each attempt once, in a work tree and branch of its own, under a keeper
// process that outlives the node, with live progress and one final report. The node starts and cancels tasks here and
// passes the reports on; a node that comes back takes over what still runs. It refuses to start an attempt twice, to run
// in the node's own directory, to merge or push anything, and to serve a task whose repository has another root. All
// methods of Worker may be called from any goroutine; Run is called once.
//
// Who trusts whom: the runner is the owner's own command and runs as the owner, without a sandbox. The accept commands
// are run by "sh -c" ("cmd /c" on Windows) and were written by whoever delegated, so a node that lets an agent delegate to
// its worker lets it run programs. What is not committed in the base repository is not part of the work tree. A run is
// blocked, whatever it exits with, if the last line of its output is "ASTER_BLOCKED: reason", or if it exits with 75.
//
// The command finds what was attached to the Delegate in the folder that ASTER_TASK_FILES names, outside its work tree, and
// an empty ASTER_TASK_FILES where nothing was. Names there are made safe, and those that would be one are numbered. An
// attempt whose files are not all there, each with its hash, is not begun.
package worker
