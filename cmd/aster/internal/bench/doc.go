// Package bench measures a node of this program against what the same machine does at least for the same work, in the
// same run: a sync of the disk, a round trip, a relay that stores nothing. The command aster bench calls it. It promises
// no absolute times and refuses to compare figures that were not taken side by side. One measurement runs at a time;
// nothing here may be called concurrently.
package bench
