package main

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/aster-mesh/aster/node"
)

const day = 24 * time.Hour

// parseAge reads whole days with a d, or a duration; below a day only none at all.
func parseAge(s string) (time.Duration, bool) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.Atoi(days)
		return time.Duration(n) * day, err == nil && n >= 0 && n <= 36500
	}
	if s == "0" {
		return 0, true
	}
	d, err := time.ParseDuration(s)
	return d, err == nil && (d == 0 || d >= day)
}

// ageText is what parseAge reads, in days where it is whole days.
func ageText(d time.Duration) string {
	switch {
	case d == 0:
		return "0"
	case d%day == 0:
		return strconv.Itoa(int(d/day)) + "d"
	}
	return durationText(d)
}

// age is a setting of at least a time, in days, or 0; what says what it may be.
func age(key, env, what string, least time.Duration, at func(*node.Config) *time.Duration) setting {
	return setting{
		key, env, "", "",
		func(c *node.Config, s string) error {
			d, ok := parseAge(s)
			if !ok || d > 0 && d < least {
				return errors.New(what)
			}
			*at(c) = d
			return nil
		},
		func(c *node.Config) any { return ageText(*at(c)) },
	}
}

// durationText is what one would write: 30m, not 30m0s.
func durationText(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
