// Package room is the rooms of a mesh and their rules: who is in, what was agreed, and whether one more message fits the
// room's budgets. The board folds it from records and the node's hub decides by it, so that both see one thing. It
// refuses nothing by itself: a Rule names what a message breaks, and the caller acts. Not safe for concurrent use.
package room
