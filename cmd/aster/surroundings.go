package main

import (
	"slices"
	"strings"

	"github.com/aster-mesh/aster/node"
	"github.com/aster-mesh/aster/protocol/api"
)

// otherVariables are those that are no settings: of the program itself, and of its tests. What a task is told begins with
// ASTER_TASK_.
var otherVariables = []string{
	"ASTER_HOME", detachedEnv, "ASTER_JOIN",
	"ASTER_BIN", "ASTER_FIGURES", "ASTER_LONG", "ASTER_MUTATIONS", "ASTER_PATIENCE", "ASTER_SEED", "ASTER_SHOTS",
}

// examineEnvironment names variables that look like settings and are none: a misspelt limit is no limit.
func examineEnvironment(environ []string) (found []finding) {
	for _, one := range environ {
		name, _, _ := strings.Cut(one, "=")
		if !strings.HasPrefix(name, "ASTER_") || strings.HasPrefix(name, "ASTER_TASK_") || strings.HasPrefix(name, "ASTER_TEST_") || slices.Contains(otherVariables, name) ||
			slices.ContainsFunc(settings, func(s setting) bool { return s.env == name }) {
			continue
		}
		found = append(found, bad("environment", "env-unknown", "unset "+clean(name)+"; aster config lists the variables that there are", "%s is no setting, and changes nothing", clean(name)))
	}
	return found
}

// examineFree says that the disk of a home has no room for a node to go on; nil: it has, or nobody can tell.
func examineFree(left int64, known bool) []finding {
	if !known || !node.DiskShort(left) {
		return nil
	}
	return []finding{bad("disk", "disk-full", "free space on the disk of the home", "%s are left on it: a node takes no new messages with so little", bytesText(left))}
}

// examineState says that the state document cannot be read; nil: it can, or there is none.
func examineState(s api.Status) []finding {
	for _, w := range s.Warnings {
		if what, fix, ok := strings.Cut(w, ". "); ok && strings.HasPrefix(w, "the state document ") {
			return []finding{bad("state", "state-bad", "edit "+clean(strings.TrimPrefix(fix, "Mend ")), "%s", clean(what))}
		}
	}
	return nil
}
