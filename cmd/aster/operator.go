package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

func operatorCommand(a *app) *cobra.Command {
	return group("operator", "Accounts by which people sign in to the board with a password",
		operatorPutCommand(a), operatorListCommand(a), operatorRemoveCommand(a))
}

func operatorPutCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "put ID", Short: "Make an account, or give it another password: the first line of stdin", Args: cobra.ExactArgs(1),
		Long: "Put makes the account ID, or gives it another password, which ends its sessions. The password is the first line of stdin,\n" +
			"at a terminal without echo: 10 bytes at least. Once there is an account, every socket needs a key, a token or a\n" +
			"session: nobody is let in any more for being the node's own user. The last account's end undoes that.",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.node()
			if err != nil {
				return err
			}
			defer c.Close()
			words, err := a.password()
			if err != nil {
				return err
			}
			if err := c.PutOperator(cmd.Context(), args[0], words); err != nil {
				return err
			}
			return a.done("account %s: sign in at the board's address", args[0])
		},
	}
}

func operatorListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the accounts", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.node()
			if err != nil {
				return err
			}
			defer c.Close()
			names, err := c.Operators(cmd.Context())
			if err != nil {
				return err
			}
			for _, name := range names {
				if a.json {
					err = errors.Join(err, a.emit(map[string]string{"id": name}))
					continue
				}
				a.say("%s", name)
			}
			return err
		},
	}
}

func operatorRemoveCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "remove ID", Short: "End an account and its sessions", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.node()
			if err != nil {
				return err
			}
			defer c.Close()
			if err := c.RemoveOperator(cmd.Context(), args[0]); err != nil {
				return err
			}
			return a.done("account %s is gone, and its sessions are over", args[0])
		},
	}
}

// done says what happened, or that it did.
func (a *app) done(format string, args ...any) error {
	if a.json {
		return a.emit(map[string]bool{"ok": true})
	}
	a.say(format, args...)
	return nil
}

// passwordLineMax is above any password that a board takes.
const passwordLineMax = 4096

// password reads the first line of stdin; it is never an argument, which others on the machine could see.
func (a *app) password() (string, error) {
	if f, ok := a.stdin.(*os.File); ok && onTerminal(f) {
		fmt.Fprint(a.stderr, "password (hidden): ")
		raw, err := term.ReadPassword(int(f.Fd()))
		fmt.Fprintln(a.stderr)
		if err != nil {
			return "", fmt.Errorf("read password: %w", err)
		}
		return string(raw), nil
	}
	line, err := bufio.NewReader(io.LimitReader(a.stdin, passwordLineMax)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read password: %w", err)
	}
	if line = strings.TrimRight(line, "\r\n"); line == "" {
		return "", usage("the password is the first line of stdin")
	}
	return line, nil
}
