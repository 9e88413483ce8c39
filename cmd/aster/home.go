package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"
)

// defaultHome is where state belongs on this system, or "" when the user has no folder.
func defaultHome() string {
	own, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	switch runtime.GOOS {
	case "darwin":
		return filepath.Join(own, "Library", "Application Support", "aster")
	case "windows":
		if local := os.Getenv("LOCALAPPDATA"); local != "" {
			return filepath.Join(local, "aster")
		}
		return filepath.Join(own, "AppData", "Local", "aster")
	}
	if state := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) { // the specification ignores relative ones
		return filepath.Join(state, "aster")
	}
	return filepath.Join(own, ".local", "state", "aster")
}

// findHome settles a.home: flag, then ASTER_HOME, then the default.
func (a *app) findHome(cmd *cobra.Command) error {
	a.usageHint = "Help: " + cmd.CommandPath() + " -h"
	a.homeFrom = "--home"
	if a.home == "" {
		a.home, a.homeFrom = os.Getenv("ASTER_HOME"), "ASTER_HOME"
	}
	if a.home == "" {
		a.home, a.homeFrom = defaultHome(), "default"
	}
	if a.home == "" {
		return nil // checkHome says so to the commands that need one
	}
	abs, err := filepath.Abs(a.home)
	if err != nil {
		return usage("--home %s: %s", a.home, err)
	}
	a.home = abs
	return nil
}

// checkHome refuses a home that another user owns or that others may read. One that does not exist is no fault.
func checkHome(home string) error {
	if home == "" {
		return usage("this user has no home folder: say where the node lives with --home DIR")
	}
	info, err := os.Stat(home)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at home: %w", err)
	}
	if !info.IsDir() {
		return refused("home %s is not a folder. Give another: aster --home DIR", tilde(home))
	}
	return checkRights(home, info)
}
