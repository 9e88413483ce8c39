package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aster-mesh/aster/cmd/aster/internal/client"
	"github.com/aster-mesh/aster/node"
	"github.com/aster-mesh/aster/protocol/api"
)

const fixStore = "aster doctor --repair"

// Codes of faults that no repair mends.
const (
	journalMissing = "records-missing"
	journalLost    = "all-lost"
)

func lostAll(h api.StoreHealth) bool {
	return slices.ContainsFunc(h.Faults, func(f api.StoreFault) bool { return f.Code == journalLost })
}

// examineStore asks the running node how its store is, or looks through the store of a home at rest.
func (a *app) examineStore(ctx context.Context, c *client.Client) []finding {
	var h api.StoreHealth
	var err error
	if c != nil {
		h, err = c.StoreHealth(ctx)
	} else {
		h, err = node.ExamineHome(ctx, a.home)
	}
	var held *node.RunningError
	switch {
	case errors.As(err, &held), client.RefusalCode(err) == "no-home":
		return nil // said by other checks
	case err != nil:
		return []finding{bad("store", "store-unreadable", fixStore, "%s", oneLine(err))}
	}
	return storeFindings(h, c != nil)
}

// storeFindings is one line for each thing that is wrong: the code, what it is, and what mends it.
func storeFindings(h api.StoreHealth, running bool) (found []finding) {
	fix := fixStore
	if running {
		fix = "aster down, then " + fixStore
	}
	for _, f := range h.Faults {
		switch f.Code {
		case journalMissing:
			found = append(found, bad("store", clean(f.Code), "start the node: aster up", "%s, which other nodes may have", clean(f.What)))
			continue
		case journalLost:
			found = append(found, bad("store", clean(f.Code), "aster doctor --accept-loss, to leave it at that", "%s", clean(f.What)))
			continue
		}
		found = append(found, bad("store", clean(f.Code), fix, "%s", clean(f.What)))
	}
	if len(h.Missing) > 0 {
		found = append(found, bad("store", "records-missing", fixStore+" while other members are up; what nobody else has is lost", "%s", missingText(h.Missing)))
	}
	if len(h.Contents) > 0 {
		found = append(found, bad("store", "content-missing", fixStore+" while other members are up; what nobody else has is lost", "%s damaged and not here any more: %s",
			plural(len(h.Contents), "attachment is", "attachments are"), clean(strings.Join(shortened(h.Contents, 4), ", "))))
	}
	if len(found) > 0 {
		return found
	}
	if h.Reason != "" {
		return []finding{fine("store", "it was damaged (%s); nothing of it is missing now. Kept: %s", clean(h.Reason), clean(strings.Join(h.SetAside, ", ")))}
	}
	return []finding{fine("store", "nothing damaged is known")}
}

// missingText names ranges, the first few in full.
func missingText(all []api.MissingRecords) string {
	total := uint64(0)
	var parts []string
	for i, m := range all {
		total += m.To - m.From + 1
		if i < 3 {
			whose := m.Node
			if whose == "" {
				whose = m.Log
			}
			parts = append(parts, fmt.Sprintf("%d to %d of %s", m.From, m.To, clean(whose)))
		}
	}
	if len(all) > 3 {
		parts = append(parts, fmt.Sprintf("%d more ranges", len(all)-3))
	}
	return plural(int(total), "record is", "records are") + " missing: " + strings.Join(parts, ", ")
}

func shortened(hashes []string, n int) (out []string) {
	for i, h := range hashes {
		if i == n {
			return append(out, fmt.Sprintf("%d more", len(hashes)-n))
		}
		out = append(out, h[:min(len(h), 12)]+"…")
	}
	return out
}

// repairStore mends what can be mended here, and says what cannot.
func (a *app) repairStore(ctx context.Context) error {
	if err := checkHome(a.home); err != nil {
		return err
	}
	h, running, err := a.repaired(ctx)
	if err != nil {
		return a.otherHolds(err)
	}
	if a.json {
		if err := a.emit(h); err != nil {
			return err
		}
	} else {
		a.sayRepaired(h, running)
	}
	if running && len(h.Missing)+len(h.Contents)+len(h.Faults) > 0 || lostAll(h) {
		return &exit{code: exitFailed}
	}
	return nil
}

func (a *app) repaired(ctx context.Context) (h api.StoreHealth, running bool, err error) {
	if _, up := a.running(ctx); up {
		c, err := a.node()
		if err != nil {
			return h, true, err
		}
		defer c.Close()
		h, err = c.RepairStore(ctx)
		return h, true, err
	}
	h, err = node.RepairHome(ctx, a.home)
	return h, false, err
}

func (a *app) sayRepaired(h api.StoreHealth, running bool) {
	switch {
	case h.Reason != "" && !running:
		a.say("the store was damaged: %s", clean(h.Reason))
		a.say("taken over: %s, each by its hash, its place in its log and its signature", plural(int(h.Salvaged), "record", "records"))
		for _, path := range h.SetAside {
			a.say("kept as it was: %s", tilde(path))
		}
	case len(h.Missing)+len(h.Contents)+len(h.Faults) == 0:
		a.say("nothing is damaged")
	}
	if len(h.Missing) > 0 {
		a.say("%s", missingText(h.Missing))
	}
	for _, c := range h.Contents {
		a.say("an attachment is damaged and was put aside: %s", clean(c))
	}
	for _, f := range h.Faults {
		a.say("%s: %s", clean(f.Code), clean(f.What))
	}
	switch {
	case !running && lostAll(h):
		a.talk("start it: %s. What other nodes have comes again. To leave it at that: %s --accept-loss", a.typed("up --detach"), a.typed("doctor"))
	case !running && len(h.SetAside) > 0 && len(h.Missing) > 0:
		a.talk("what is missing comes from other nodes when this one runs: %s. What nobody else has is lost unless %s is recovered", a.typed("up --detach"), tilde(h.SetAside[0]))
	case !running && (h.Reason != "" || len(h.Missing)+len(h.Contents) > 0):
		a.talk("what is missing comes from other nodes when this one runs: %s. Then %s says what nobody had", a.typed("up --detach"), a.typed("doctor"))
	case running && len(h.Missing)+len(h.Contents) > 0:
		a.talk("no linked node had it. Try again when others are up: what was only here is lost")
	}
}
