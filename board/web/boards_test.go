package web

import (
	"context"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol/api"
)

func (f *fake) JoinBoard(_ context.Context, req api.BoardRequest) (api.Board, error) {
	f.note("join %s %v", req.URL, req.Agents)
	return api.Board{URL: req.URL, Name: "far"}, nil
}

func (f *fake) Boards(context.Context) ([]api.Board, error) { return nil, nil }

func (f *fake) LeaveBoard(_ context.Context, which string) error {
	f.note("leave board %s", which)
	return nil
}

func TestBoardsAreJoinedListedAndLeft(t *testing.T) {
	f := newFake()
	_, ts := serve(t, f)
	for _, c := range []struct{ method, path, body, want string }{
		{"POST", "/boards", `{"url":"ws://h/ws","agents":["a"]}`, `"name":"far"`},
		{"GET", "/boards", ``, `{"boards":[]}`},
		{"POST", "/boards/leave", `{"url":"far"}`, `"event":"left"`},
	} {
		if status, _, body := ask(t, ts, c.method, api.Prefix+c.path, c.body, bearer); status != 200 || !strings.Contains(body, c.want) {
			t.Errorf("%s %s: %d %s", c.method, c.path, status, body)
		}
	}
}
