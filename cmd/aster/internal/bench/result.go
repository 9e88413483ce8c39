package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// Raw is a baseline of the same run.
type Raw struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

// Row is one figure with what it is held against.
type Row struct {
	Bench string  `json:"bench"`
	Case  string  `json:"case"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	P99   float64 `json:"p99,omitempty"` // in Unit
	Raw   []Raw   `json:"raw,omitempty"`
	Ratio float64 `json:"ratio,omitempty"` // Value to the first of Raw
	Bar   float64 `json:"bar,omitempty"`   // in Unit; 0: this figure has none
	Floor bool    `json:"floor,omitempty"` // the bar is a least, not a most
	Rule  string  `json:"rule,omitempty"`  // how the bar comes about
	Met   *bool   `json:"met,omitempty"`
	Note  string  `json:"note,omitempty"`
	Load  float64 `json:"load,omitempty"` // of the machine over the last minute; absent where it is not known
}

// judge sets ratio and verdict.
func (r Row) judge() Row {
	if len(r.Raw) > 0 && r.Raw[0].Value > 0 && r.Raw[0].Unit == r.Unit {
		r.Ratio = r.Value / r.Raw[0].Value
	}
	if r.Bar > 0 {
		met := r.Value <= r.Bar
		if r.Floor {
			met = r.Value >= r.Bar
		}
		r.Met = &met
	}
	r.Load = loadAverage()
	return r
}

// loadAverage is the machine's load over a minute, 0 where it is not known.
func loadAverage() float64 {
	raw, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(raw), " ")
	load, _ := strconv.ParseFloat(first, 64)
	return load
}

// Print writes rows for a person.
func Print(w io.Writer, rows []Row) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "MEASURED\tFIGURE\tP99\tBAR\t\tRAW, SAME RUN")
	var notes []string
	for i := range rows {
		r := &rows[i]
		p99, bar, verdict := "", "", ""
		if r.P99 > 0 {
			p99 = amount(r.P99, r.Unit)
		}
		if r.Bar > 0 {
			bar = "at most "
			if r.Floor {
				bar = "at least "
			}
			bar += amount(r.Bar, r.Unit)
			if r.Rule != "" {
				bar += " (" + r.Rule + ")"
			}
		}
		if r.Met != nil {
			verdict = "not met"
			if *r.Met {
				verdict = "met"
			}
		}
		var raw []string
		for _, b := range r.Raw {
			raw = append(raw, b.Name+" "+amount(b.Value, b.Unit))
		}
		if r.Ratio > 0 {
			raw = append(raw, fmt.Sprintf("ratio %.2f", r.Ratio))
		}
		if r.Note != "" {
			notes = append(notes, r.Case+": "+r.Note)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Bench+" "+r.Case, amount(r.Value, r.Unit), p99, bar, verdict, strings.Join(raw, ", "))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, n := range notes {
		fmt.Fprintln(w, n)
	}
	if load := loadAverage(); load > 0 {
		fmt.Fprintf(w, "load average of the machine: %.1f\n", load)
	}
	return nil
}

// PrintJSON writes one object a line.
func PrintJSON(w io.Writer, rows []Row) error {
	e := json.NewEncoder(w)
	for i := range rows {
		if err := e.Encode(rows[i]); err != nil {
			return err
		}
	}
	return nil
}

// amount is a number with three digits that matter and its unit.
func amount(v float64, unit string) string {
	switch {
	case v >= 1000:
		return strconv.FormatFloat(v, 'f', 0, 64) + " " + unit
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64) + " " + unit
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64) + " " + unit
	default:
		return strconv.FormatFloat(v, 'f', 2, 64) + " " + unit
	}
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
