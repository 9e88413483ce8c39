package main

import "testing"

// TestAHintIsAboutTheHomeThatWasNamed: what a text says to type works as it is pasted.
func TestAHintIsAboutTheHomeThatWasNamed(t *testing.T) {
	a := &app{home: "/h", homeFrom: "--home"}
	newRoot(a)
	a.home, a.homeFrom = "/h", "--home"
	for text, want := range map[string]string{
		"Start it: aster up":                              "Start it: aster --home /h up",
		"aster down, then aster up --detach":              "aster --home /h down, then aster --home /h up --detach",
		"(open it: aster invite --lan)":                   "(open it: aster --home /h invite --lan)",
		"aster --home /x up":                              "aster --home /x up",
		"with a new home (aster up --home DIR)":           "with a new home (aster up --home DIR)",
		"there: aster up --detach --join -":               "there: aster up --detach --join -",
		"run aster agent move on mac-mini, which is main": "run aster agent move on mac-mini, which is main",
		"move it there: aster agent move, on mac-mini":    "move it there: aster agent move, on mac-mini",
		"New one, on a member's node: aster invite":       "New one, on a member's node: aster invite",
		"End it there: aster down":                        "End it there: aster down",
		"aster down in the copy's home (/x)":              "aster down in the copy's home (/x)",
		"copy the whole line that aster invite printed":   "copy the whole line that aster invite printed",
		"Name the file that aster export wrote":           "Name the file that aster export wrote",
		"aster invite makes a new one":                    "aster invite makes a new one",
		"where the home still is: aster export FILE":      "where the home still is: aster export FILE",
		"free it on mac: aster agent forget x":            "free it on mac: aster agent forget x",
		"On it: aster status; then aster invite --lan":    "On it: aster status; then aster invite --lan",
		"an inside member invites: aster invite":          "an inside member invites: aster invite",
		"ask the board's owner to renew it: aster key l":  "ask the board's owner to renew it: aster key l",
		"aster doctor, on each of a, b":                   "aster doctor, on each of a, b",
		"aster down here, or to go on here: aster up":     "aster --home /h down here, or to go on here: aster --home /h up",
		"Give it up: aster up --leave --join -":           "Give it up: aster --home /h up --leave --join -",
		"an old invite. Another: aster key list":          "an old invite. Another: aster --home /h key list",
		"to have it: aster show m-x --save DIR":           "to have it: aster --home /h show m-x --save DIR",
		"aster is a mesh; /usr/bin/aster up":              "aster is a mesh; /usr/bin/aster up",
		"in the repository: aster task fetch t-7kq2m":     "in the repository: aster --home /h task fetch t-7kq2m",
	} {
		if got := a.pasteable(text); got != want {
			t.Errorf("%q\nbecomes %q\n   want %q", text, got, want)
		}
	}
	if a.homeFrom = "ASTER_HOME"; a.pasteable("aster up") != "aster up" {
		t.Error("a home of the environment is typed again")
	}
	if a.home, a.homeFrom = "/my home", "--home"; a.pasteable("aster up") != "aster --home '/my home' up" {
		t.Errorf("a home with a space: %s", a.pasteable("aster up"))
	}
}
