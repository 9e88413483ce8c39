// Command aster runs a node and talks to one: flags become a configuration, a command becomes a request, an answer
// becomes lines for a person or, with --json, for a program. People, agents and scripts call it; package node and the
// HTTP API do the work. It refuses what it cannot do with one sentence, the command that helps, and an exit code: 1 the
// thing asked for failed, 2 usage, 3 not running, 4 refused, 5 timed out. Function run may be called by several
// goroutines at once, as tests do; it keeps no state of the package's own.
package main
