package sim

// Shrink drops actions and faults from a plan as long as the run still breaks the same rule. It returns the shortest
// plan that it found, in at most runsMax runs.
func Shrink(plan Plan, rule string, runsMax int) Plan {
	breaks := func(p Plan) bool {
		if runsMax--; runsMax < 0 {
			return false
		}
		v := New(p).Run()
		return v != nil && v.Rule == rule
	}
	for size := len(plan.Actions) / 2; size > 0 && runsMax > 0; {
		dropped := false
		for from := 0; from < len(plan.Actions) && runsMax > 0; {
			less := plan
			less.Actions = append(plan.Actions[:from:from], plan.Actions[min(from+size, len(plan.Actions)):]...)
			if breaks(less) {
				plan, dropped = less, true
			} else {
				from += size
			}
		}
		if !dropped || size > 1 {
			size /= 2
		}
	}
	for _, calmer := range []func(*Plan){
		func(p *Plan) { p.Loss, p.Twice, p.Reorder = 0, 0, 0 },
		func(p *Plan) { p.Skew, p.Drift = 0, 0 },
		func(p *Plan) { p.Lazy = 0 },
		func(p *Plan) { p.SyncTime = 0 },
		func(p *Plan) { p.Codec = false },
	} {
		less := plan
		if calmer(&less); breaks(less) {
			plan = less
		}
	}
	return plan
}
