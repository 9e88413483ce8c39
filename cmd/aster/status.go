package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aster-mesh/aster/protocol/api"
	"github.com/spf13/cobra"
)

func statusCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "One screen of health", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.node()
			if err != nil {
				return err
			}
			defer c.Close()
			s, err := a.statusWithin(cmd.Context(), c)
			if err != nil {
				return err
			}
			if a.json {
				// BoardDigest is called board in the command line's contract; the address keeps its own name.
				err := a.emit(struct {
					api.Status
					Address string `json:"address"`
					Board   string `json:"board"`
				}{s, s.Board, s.BoardDigest})
				if err == nil && (s.DiskFull || s.DiskShort) {
					err = &exit{code: exitFailed}
				}
				return err
			}
			rows := statusRows(s)
			for _, row := range rows {
				row[len(row)-1] = a.pasteable(row[len(row)-1])
			}
			table(a.stdout, rows...)
			for _, w := range s.Warnings {
				a.talk("%s", clean(w))
			}
			if s.DiskFull || s.DiskShort {
				return &exit{code: exitFailed} // its row says what to do
			}
			return nil
		},
	}
}

func statusRows(s api.Status) [][]string {
	up := time.UnixMilli(s.Now).Sub(time.UnixMilli(s.Since)) // both of the node's clock
	listen := strings.Join(s.Listen, " ")
	if s.Loopback {
		listen += " (this machine only; open it: aster invite --lan)"
	}
	disk := bytesText(s.Disk)
	if s.DiskMax > 0 {
		disk += " of " + bytesText(s.DiskMax)
	}
	switch {
	case s.DiskShort:
		disk += "; the disk itself is full: new messages are refused; free space on it, and the node goes on by itself"
	case s.DiskFull:
		disk += ", full: new messages are refused; raise [store] bytes_max, then aster up --replace --detach"
	}
	behind := "nothing missing"
	if s.Behind > 0 {
		behind = count(s.Behind) + " still to come"
	}
	rows := [][]string{
		{clean(s.Name), fmt.Sprintf("up %s, pid %d, aster %s", span(up), s.PID, clean(s.Version))},
		{"peer", string(s.Peer)},
		{"mesh", meshText(s)},
		{"main", mainText(s.Main)},
		{"speaks as", dash(clean(string(s.Agent)))},
		{"board", s.Board},
		{"listens on", dash(listen)},
		{"journal", fmt.Sprintf("%s records, %s", count(s.Records), behind)},
		{"disk", disk},
		{"attachments", retentionText(s)},
		{"history", historyText(s)},
		{"memory", fmt.Sprintf("%s, %d goroutines", bytesText(s.ResidentBytes), s.Goroutines)},
		{"home", tilde(s.Home)},
	}
	if s.Fenced {
		rows = slices.Insert(rows, 0, []string{"fenced", "a newer start of this node runs elsewhere: this one writes nothing and does not know who is main"})
	}
	if next := s.Retention.Next; next != "" {
		at := slices.IndexFunc(rows, func(row []string) bool { return row[0] == "history" })
		rows = slices.Insert(rows, at+1, []string{"base", clean(next)})
	}
	if s.Compared != nil {
		rows = append(rows, []string{"boards", comparedText(s)})
	}
	if len(s.Boards) > 0 {
		rows = append(rows, []string{"other boards", boardsText(s.Boards)})
	}
	return rows
}

func meshText(s api.Status) string {
	role := string(s.Role)
	if s.Fenced {
		role = "fenced"
	}
	if s.Nodes <= 1 {
		return "no other node yet; this one is " + role
	}
	return fmt.Sprintf("%d nodes, %d of %d others linked; this one is %s", s.Nodes, s.Linked, s.Nodes-1, role)
}

func mainText(m api.Main) string {
	switch {
	case m.Fenced:
		return "not known here: this start is fenced"
	case m.Peer == "":
		return "none yet"
	case m.Agent == "":
		return fmt.Sprintf("%s, no agent named yet, term %d%s", clean(m.Node), m.Term, hereText(m.Here))
	}
	return fmt.Sprintf("%s on %s, term %d%s", clean(string(m.Agent)), clean(m.Node), m.Term, hereText(m.Here))
}

func hereText(here bool) string {
	if here {
		return " (this node)"
	}
	return ""
}

// heldTexts say for people what holds content that is old enough to leave.
var heldTexts = map[string]string{
	"young": "young", "unread": "not processed", "open-task": "of open tasks", "question": "still asked for an answer", "shown": "shown on boards",
	"damaged": "perhaps named by a damaged record",
}

// historyText says from when on records are kept, and whether old ones leave.
func historyText(s api.Status) string {
	r := s.Retention
	out := "all records are kept"
	if r.From > 0 {
		out = "kept from " + clock(r.From) + " on; what was settled before has left"
	}
	if r.Records > 0 {
		out += "; records leave when they are " + ageText(time.Duration(r.Records)*time.Millisecond) + " old and the members agree on what they come to"
	}
	return out
}

// retentionText says how long attachments and large values stay, what left, and what holds those that are old enough.
func retentionText(s api.Status) string {
	r := s.Retention
	out := "stay until the store is nearly full"
	if r.Age > 0 {
		out = "leave " + ageText(time.Duration(r.Age)*time.Millisecond) + " after they are over"
	}
	if r.Left > 0 {
		out += fmt.Sprintf("; %d (%s) left since the start", r.Left, bytesText(r.LeftBytes))
	}
	var held []string
	for _, h := range r.Held {
		why := heldTexts[h.Why]
		if h.Member != "" {
			why = "not on " + clean(h.Member) + " yet"
		}
		if why != "" && h.Why != "young" {
			held = append(held, fmt.Sprintf("%d (%s) %s", h.Contents, bytesText(h.Bytes), why))
		}
	}
	if len(held) > 0 {
		out += "; held: " + strings.Join(held, ", ")
	}
	return out
}
