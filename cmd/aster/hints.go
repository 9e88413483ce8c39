package main

import (
	"os"
	"regexp"
	"strings"
)

var (
	// hinted is a command of ours in a text for people, with what may belong to it.
	hinted = regexp.MustCompile(`(^|[^/\w-])aster ([a-z]+(?:-[a-z]+)*)([^.;,)\n]*)`)
	// forOthers and byOthers are the words before and after a command that say that it is for, or was of, another home or machine.
	forOthers = regexp.MustCompile(`(?:\b(?:each|there|machines?|node|member inside|member invites|home still is|On it)|\bthe board's owner\b[^.;\n]*|\bon \S+): $|\bmade by $`)
	byOthers  = regexp.MustCompile(`^(?: \S+)*? (?:on|there|in the|wrote|printed|makes a new)\b`)
)

// pasteable puts --home into the commands that a text names when this call was made with it: pasted as they are, they are about
// the same node then. One that names a home itself stays, and so does one that is for another machine.
func (a *app) pasteable(text string) string {
	if a.homeFrom != "--home" || a.commands == nil {
		return text
	}
	var out strings.Builder
	elsewhere := false
	for {
		at := hinted.FindStringSubmatchIndex(text)
		if at == nil {
			out.WriteString(text)
			return out.String()
		}
		before, command, rest, after := text[:at[3]], text[at[4]:at[5]], text[at[6]:at[7]], text[at[1]:]
		if !strings.HasSuffix(before, "then ") { // the second of two is where the first was
			elsewhere = forOthers.MatchString(before) && !strings.HasSuffix(before, " here: ") || byOthers.MatchString(rest) || strings.HasPrefix(after, ", on ")
		}
		out.WriteString(before)
		if a.commands[command] && !elsewhere && !strings.Contains(rest, "--home") {
			out.WriteString(a.typed(command))
		} else {
			out.WriteString("aster " + command)
		}
		text = text[at[5]:]
	}
}

// typed is a command of ours as it must be typed for the home that this one is about.
func (a *app) typed(command string) string {
	if a.homeFrom != "--home" {
		return "aster " + command
	}
	return "aster --home " + homeWord(a.home) + " " + command
}

// homeWord is a home as it can be pasted into a shell.
func homeWord(home string) string {
	switch {
	case os.PathSeparator == '\\' && strings.ContainsAny(home, " &()^;,"):
		return `"` + home + `"`
	case os.PathSeparator != '\\' && strings.ContainsAny(home, " \t\n'\"\\$`!*?[]{}()<>|&;#"):
		return "'" + strings.ReplaceAll(home, "'", `'\''`) + "'"
	}
	return tilde(home)
}
