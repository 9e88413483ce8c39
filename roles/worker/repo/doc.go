// Package repo carries commits between repositories that share no remote: it describes a repository, bundles a base,
// makes a work tree for one attempt, commits what a run left, and brings a result into another clone. roles/worker and
// its keeper call it on the machine that works, cmd/aster on the machine that asked. It refuses shallow clones,
// repositories without a commit, bundles above protocol.BlobBytesMax and repositories of another root, and it runs
// neither hooks nor a shell nor anything over a network. Any goroutine may call it; calls that add or remove work trees
// of one repository must not overlap, which their caller sees to.
package repo
