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

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

func joinBoardCommand(a *app) *cobra.Command {
	var req api.BoardRequest
	var agents []string
	var as, key string
	var list, leave bool
	cmd := &cobra.Command{
		Use:   "join-board [WSURL]",
		Short: "Let agents of this node take part at a board that is not aster's, or of another mesh",
		Long: "Let agents of this node take part at another board, such as ws://host:7878/ws. Its agents appear here as NAME@BOARD, in the\n" +
			"role of a collab: they are sent Requests, not Delegates, and what they say widens no right. What is sent to them waits\n" +
			"here while the board is away. The node stays at the board over restarts, until --leave.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case list && (leave || len(args) > 0):
				return usage("--list stands alone")
			case list:
				return a.listBoards(cmd)
			case len(args) == 0:
				return usage("which board? aster join-board ws://host:7878/ws")
			case leave:
				return a.leaveBoard(cmd, args[0])
			case req.All && len(agents) > 0:
				return usage("--agent or --all, not both")
			}
			req.URL, req.As = args[0], protocol.AgentID(as)
			for _, id := range agents {
				req.Agents = append(req.Agents, protocol.AgentID(id))
			}
			var err error
			if req.Key, err = a.boardKey(key); err != nil {
				return err
			}
			return a.joinBoard(cmd, req)
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&agents, "agent", nil, "an agent of this node that joins; may be given several times (default: whom commands speak as)")
	f.BoolVar(&req.All, "all", false, "every agent of this node joins, those to come included")
	f.StringVar(&as, "as", "", "what the agent is called there (default: as here)")
	f.StringVar(&req.Name, "name", "", "what the board is called here: its agents are NAME@… (default: its host)")
	f.StringVar(&key, "key", "", `file that holds a key of that board, or "-" to read it from stdin, hidden`)
	f.BoolVar(&list, "list", false, "show the boards that this node has joined")
	f.BoolVar(&leave, "leave", false, "give the board up; its agents are forgotten here")
	return cmd
}

// keyFileBytesMax is far above any key.
const keyFileBytesMax = 4 << 10

// boardKey reads a key from where --key says. A key itself is refused there: arguments are everybody's to read.
func (a *app) boardKey(from string) (string, error) {
	switch {
	case from == "":
		return "", nil
	case from == "-":
		return a.hidden("paste the key (hidden): ", "key")
	}
	for _, prefix := range []string{"ck-", "pk-", "uk-", "lk-"} {
		if strings.HasPrefix(from, prefix) && !strings.ContainsAny(from, `/\.`) {
			return "", usage("--key takes a file or -, so that the key stands in no list of processes")
		}
	}
	f, err := os.Open(from)
	if err != nil {
		return "", failed("no key in %s: %v", from, errors.Unwrap(err))
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, keyFileBytesMax))
	if err != nil {
		return "", fmt.Errorf("read key: %w", err)
	}
	key := strings.TrimSpace(string(raw))
	if key == "" {
		return "", failed("%s is empty", from)
	}
	return key, nil
}

// hidden reads one line without echo from a terminal, or from a pipe.
func (a *app) hidden(prompt, what string) (string, error) {
	var line string
	if f, ok := a.stdin.(*os.File); ok && onTerminal(f) {
		fmt.Fprint(a.stderr, prompt)
		raw, err := term.ReadPassword(int(f.Fd()))
		fmt.Fprintln(a.stderr)
		if err != nil {
			return "", fmt.Errorf("read %s: %w", what, err)
		}
		line = string(raw)
	} else {
		var err error
		line, err = bufio.NewReader(io.LimitReader(a.stdin, keyFileBytesMax)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", fmt.Errorf("read %s: %w", what, err)
		}
	}
	if line = strings.TrimSpace(line); line == "" {
		return "", refused("no %s came", what)
	}
	return line, nil
}

func (a *app) joinBoard(cmd *cobra.Command, req api.BoardRequest) error {
	c, err := a.node()
	if err != nil {
		return err
	}
	defer c.Close()
	got, err := c.JoinBoard(cmd.Context(), req)
	if err != nil {
		return err
	}
	in, stopped := len(got.Seats) > 0 || got.All, false
	for _, s := range got.Seats {
		in, stopped = in && s.State == api.SeatJoined, stopped || s.State == api.SeatStopped
	}
	if scheme, _, ok := strings.Cut(req.URL, "://"); ok && strings.HasPrefix(strings.ToLower(scheme), "http") {
		a.talk("%s:// is a page's; a board's own address is %s", clean(scheme), clean(got.URL))
	}
	if a.json {
		err = a.emit(got)
	} else {
		table(a.stdout, boardRows([]api.Board{got})...)
		switch {
		case got.Undone:
			a.talk("nothing was kept. Join it again with what it wants")
		case stopped:
			a.talk("the board stays on the list. Join it again with what it wants, or give it up: %s --leave %s", a.typed("join-board"), clean(got.Name))
		case in:
			a.talk("its agents are called NAME@%s here: aster agents", clean(got.Name))
		}
	}
	if err == nil && !in {
		return &exit{code: exitFailed}
	}
	return err
}

func (a *app) listBoards(cmd *cobra.Command) error {
	c, err := a.node()
	if err != nil {
		return err
	}
	defer c.Close()
	all, err := c.Boards(cmd.Context())
	if err != nil {
		return err
	}
	if a.json {
		return emitAll(a, all)
	}
	if len(all) == 0 {
		a.talk("no boards. Join one: aster join-board ws://host:7878/ws")
		return nil
	}
	table(a.stdout, boardRows(all)...)
	if rows := roomRows(all); len(rows) > 1 {
		fmt.Fprintln(a.stdout)
		table(a.stdout, rows...)
	}
	return nil
}

// roomRows are the rooms at other boards in which agents of this node are.
func roomRows(boards []api.Board) [][]string {
	rows := [][]string{{"ROOM", "TOPIC", "OURS IN IT"}}
	for i := range boards {
		for _, r := range boards[i].Rooms {
			in := make([]string, len(r.In))
			for j, id := range r.In {
				in[j] = clean(string(id))
			}
			rows = append(rows, []string{clean(string(r.ID)), dash(clean(r.Topic)), strings.Join(in, ", ")})
		}
	}
	return rows
}

func (a *app) leaveBoard(cmd *cobra.Command, which string) error {
	c, err := a.node()
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.LeaveBoard(cmd.Context(), which); err != nil {
		return err
	}
	if a.json {
		return a.emit(map[string]string{"event": "left", "board": which})
	}
	a.say("%s is left; its agents are forgotten here", clean(which))
	return nil
}

func boardRows(boards []api.Board) [][]string {
	rows := [][]string{{"BOARD", "ADDRESS", "AGENT", "AS", "STATE", "ITS AGENTS"}}
	for i := range boards {
		b := &boards[i]
		there := fmt.Sprint(len(b.There))
		if len(b.Seats) == 0 {
			rows = append(rows, []string{clean(b.Name), clean(b.URL), "-", "-", "no agent here yet", there})
		}
		for _, s := range b.Seats {
			rows = append(rows, []string{clean(b.Name), clean(b.URL), clean(string(s.Agent)), clean(string(s.As)), seatText(&s), there})
		}
	}
	return rows
}

// seatText says how an agent stands at a board, in people's words.
func seatText(s *api.Seat) string {
	switch s.State {
	case api.SeatJoined:
		if s.Role == "" {
			return "joined"
		}
		return "joined as " + clean(s.Role)
	case api.SeatWaiting:
		return "tries again: " + clean(s.Why)
	case api.SeatStopped:
		return "stopped: " + clean(s.Why)
	}
	return string(s.State)
}

// boardsText is the line of aster status.
func boardsText(boards []api.Board) string {
	var parts []string
	for i := range boards {
		joined := 0
		for _, s := range boards[i].Seats {
			if s.State == api.SeatJoined {
				joined++
			}
		}
		parts = append(parts, fmt.Sprintf("%s (%d of %s joined)", clean(boards[i].Name), joined, plural(len(boards[i].Seats), "agent", "agents")))
	}
	return strings.Join(parts, ", ")
}
