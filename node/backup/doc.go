// Package backup is the form of an exported home: a gzipped tar that begins with whose it is, holds the home's files, and
// ends with the size and hash of each, so that a file that was cut short or changed is told from a whole one.
// Package node writes and reads it; what belongs into it is decided there.
// It refuses what is damaged by the part's name, what a later version wrote, and names that lead out of the folder.
// Nothing is shared between two archives; one Writer or Read is for one goroutine.
package backup
