// Package retain decides whether content that messages name (attachments, large values) may leave a node's disk: when it
// is over, old enough, and owed to nobody. Package node asks it of one content at a time, with what journal, board, hub and
// replica know of each message that names it. It refuses for the first reason that holds, in one order, so that people are
// told what holds it, and it acts on nothing: records, hashes and all that is folded from them stay whatever it says. It
// keeps no state, so any number of goroutines may call it at once.
package retain
