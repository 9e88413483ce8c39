// Package deadlock finds agents that wait for each other's answers, by what they said. The node asks it now and then, if its
// owner wants that, and tells people what it found: it moves nothing by itself. It refuses to call a Delegate a wait, since
// its worker goes on alone, and passes over whatever was answered in any way. Its functions may be called by anyone.
package deadlock
