// Package board folds the journal into what people look at: members, agents, tasks, declarations, presence, counts.
// The node applies each record once and reads the views; the page and the command line show them. It refuses to decide
// anything and keeps no message bodies: of a task the words that a row shows, of all else positions and figures. A
// State belongs to one goroutine, the node's loop; what its views return is the caller's own.
package board
