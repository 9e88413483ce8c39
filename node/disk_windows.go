package node

// diskLeft is not asked on this system; a commit that finds no room is taken back all the same.
func diskLeft(string) (int64, bool) { return 0, false }
