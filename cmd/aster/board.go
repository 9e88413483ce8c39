package main

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/spf13/cobra"
)

func boardCommand(a *app) *cobra.Command {
	var printOnly, signOutAll bool
	cmd := &cobra.Command{
		Use: "board", Short: "Open the board by a link that works once", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.node()
			if err != nil {
				return err
			}
			defer c.Close()
			if signOutAll {
				if err := c.SignOutAll(cmd.Context()); err != nil {
					return err
				}
				return a.done("every session of this board is over")
			}
			link, err := c.BoardLink(cmd.Context())
			if err != nil {
				return err
			}
			if a.json {
				return a.emit(map[string]string{"url": link})
			}
			a.say("%s", link)
			if !printOnly && onTerminal(a.stdout) && !openPage(cmd.Context(), link) {
				a.talk("no browser was found: open the link yourself, within 10 min")
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&signOutAll, "sign-out-all", false, "end every session of the board instead, with all that it holds open")
	cmd.Flags().BoolVar(&printOnly, "print", false, "print the link and open nothing")
	return cmd
}

// openPage asks the system to show a page. The link is worthless once used, so that it may stand in an argument.
func openPage(ctx context.Context, link string) bool {
	name, args := "xdg-open", []string{link}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", link}
	case "linux":
		if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
			return false
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return exec.CommandContext(ctx, name, args...).Run() == nil
}
