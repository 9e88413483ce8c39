package link

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf8"
)

// FuzzServe lets a peer write any bytes: the connection ends, and what was handed over before is whole and allowed.
func FuzzServe(f *testing.F) {
	f.Add(frame(1, []byte("hello")), false)
	f.Add(append(frame(9, []byte("p")), frame(8, []byte{3, 232})...), true)
	f.Add([]byte{0x01, 0x81, 0, 0, 0, 0, 'a', 0x80, 0x81, 0, 0, 0, 0, 'b'}, true) // in two fragments
	f.Add(frame(2, make([]byte, 300)), true)
	f.Add(frame(1, []byte("\xff")), false)
	f.Add([]byte{0xc1, 0xff, 0xff}, false)
	f.Fuzz(func(t *testing.T, b []byte, known bool) {
		synctest.Test(t, func(t *testing.T) {
			c, r := newRaw(t, Options{LimitStranger: 100, Limit: 400})
			if known {
				c.Authenticated()
			}
			done := make(chan error, 1)
			go func() {
				done <- c.Serve(context.Background(), func(m []byte, binary bool) {
					if len(m) > 400 || !known && len(m) > 100 || !binary && !utf8.Valid(m) {
						t.Errorf("handed over %d bytes, known %v, binary %v", len(m), known, binary)
					}
					c.Send(m)
				})
			}()
			read := make(chan struct{})
			go func() {
				defer close(read)
				for op := byte(1); op != 0; {
					op, _ = r.read()
				}
			}()
			r.write(b)
			r.conn.Close()
			if err := <-done; err == nil {
				t.Error("the connection ended without a reason")
			}
			<-read
		})
	})
}

func ExampleUpgrade() {
	done := make(chan struct{})
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := Upgrade(w, r, Options{})
		if err != nil {
			return // the client has been answered
		}
		go func() {
			defer close(done)
			_ = c.Serve(context.Background(), func(data []byte, _ bool) { c.Send(append([]byte("echo "), data...)) })
		}()
	}))
	defer ts.Close()

	c, err := Dial(context.Background(), "ws"+strings.TrimPrefix(ts.URL, "http"), nil, Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	c.Send([]byte("hello"))
	err = c.Serve(context.Background(), func(data []byte, _ bool) {
		fmt.Println(string(data))
		c.Close(1000, "enough")
	})
	<-done
	fmt.Println(err)
	// Output:
	// echo hello
	// closed here: 1000 enough
}
