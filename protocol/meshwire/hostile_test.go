package meshwire

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

// allocated is how many bytes f makes the heap grow by, garbage included.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestHostileBodiesAreRefusedByNameAndCostNothing(t *testing.T) {
	deep := func(open string, n int) string { return "\x81\xa1m" + strings.Repeat(open, n) }
	array32 := func(n uint32) string { return string(binary.BigEndian.AppendUint32([]byte("\x81\xa1m\xdd"), n)) }
	for name, c := range map[string]struct {
		body string
		want string
	}{
		"empty":                       {"", "not a map"},
		"an array for a map":          {"\x91\x01", "not a map"},
		"array header of 50 million":  {array32(50_000_000), "declared"},
		"map header of 50 million":    {"\x81\xa1m\xdf\x02\xfa\xf0\x80", "declared"},
		"bin header of 500 MB":        {"\x81\xa1m\xc6\x1d\xcd\x65\x00", "declared"},
		"text header of 500 MB":       {"\x81\xa1m\xdb\x1d\xcd\x65\x00", "declared"},
		"negative length":             {"\x81\xa1m\xc6\xff\xff\xff\xff", "declared"},
		"1 MB of nested arrays":       {deep("\x91", 1_000_000), "directly in an array"},
		"1 MB of nested maps":         {deep("\x81\xa1a", 300_000), "nested deeper"},
		"arrays in maps in arrays":    {deep("\x91\x81\xa1a", 200_000), "nested deeper"},
		"nested under an unknown key": {"\x81\xa3new" + strings.Repeat("\x81\xa1a", 300_000), "nested deeper"},
		"a million nils":              {array32(1_000_000) + strings.Repeat("\xc0", 1_000_000), "array elements"},
		"many short arrays": {"\x81\xa1m" + "\xdc\x27\x10" + strings.Repeat("\x81\xa1a\x92\xc0\xc0", 10_000),
			"array elements"},
		"extension":            {"\x81\xa1m\xd4\x01\x00", "extension"},
		"timestamp extension":  {"\x81\xa1m\xd6\xff\x00\x00\x00\x00", "extension"},
		"interned text":        {"\x81\xa1m\xd4\x80\x01", "extension"},
		"reserved byte":        {"\x81\xa1m\xc1", "reserved"},
		"text not UTF-8":       {"\x81\xa1m\xa2\xff\xfe", "not UTF-8"},
		"key not UTF-8":        {"\x81\xa1\xff\xc0", "not UTF-8"},
		"key is a number":      {"\x81\x01\xc0", "not text"},
		"key is bin":           {"\x81\xc4\x01m\xc0", "not text"},
		"key twice":            {"\x82\xa1m\xc0\xa1m\xc0", "twice"},
		"key twice, deeper":    {"\x81\xa1z\x91\x82\xa1m\xc0\xa1m\xc0", "twice"},
		"33 keys":              {"\xde\x00\x21" + strings.Repeat("\xa1a\xc0", 33), "33 keys"},
		"bytes after the body": {"\x80\x80", "after the body"},
		"cut in a number":      {"\x81\xa1m\xcf\x00", "in the middle"},
		"cut before a value":   {"\x81\xa1m", "in the middle"},
		"cut before a key":     {"\x81", "in the middle"},
	} {
		for typ := TypeHello; typ <= TypeStarted; typ++ {
			var err error
			cost := allocated(func() { _, err = Decode(typ, []byte(c.body)) })
			if !errors.Is(err, ErrBadFrame) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%s, type %d: got %v, want %q", name, typ, err, c.want)
			}
			if most := uint64(len(c.body)) + 64<<10; cost > most {
				t.Errorf("%s, type %d: %d bytes allocated, at most %d", name, typ, cost, most)
			}
		}
	}
}

func TestBodiesOfTheWrongShapeAreRefused(t *testing.T) {
	log, err := (&ids{}).fromLog(logFor("ada", protocol.ScopeInside))
	if err != nil {
		t.Fatal(err)
	}
	bin := func(b []byte) string { return "\xc4" + string([]byte{byte(len(b))}) + string(b) }
	l, sum := bin(log), bin(make([]byte, 32))
	for name, c := range map[string]struct {
		typ  byte
		body string
		want string
	}{
		"no log":                {TypeNeed, "\x81\xa1f\x01", "log id of 0 bytes"},
		"half a log":            {TypeNeed, "\x82\xa1f\x01\xa1l" + bin(log[:40]), "log id of 40 bytes"},
		"a scope of no kind":    {TypeNeed, "\x82\xa1f\x01\xa1l" + bin(append(log[:48:48], 'z')), "no such scope"},
		"a room without number": {TypeNeed, "\x82\xa1f\x01\xa1l" + bin(append(log[:48:48], "rplan"...)), "no such scope"},
		"a short outsider":      {TypeNeed, "\x82\xa1f\x01\xa1l" + bin(append(log[:48:48], "oabc"...)), "no such scope"},
		"from 0":                {TypeNeed, "\x81\xa1l" + l, "from is 0"},
		"from -1":               {TypeNeed, "\x82\xa1f\xff\xa1l" + l, "from is 18446744073709551615"},
		"to before from":        {TypeNeed, "\x83\xa1f\x05\xa1t\x04\xa1l" + l, "to is 4"},
		"a number for a log":    {TypeNeed, "\x82\xa1f\x01\xa1l\x07", "decoding"},
		"text for a seq":        {TypeNeed, "\x82\xa1f\xa11\xa1l" + l, "decoding"},
		"an array for a mark":   {TypeHave, "\x81\xa1m\x91\x91\xc0", "directly in an array"},
		"text for marks":        {TypeHave, "\x81\xa1m\xa1x", "decoding"},
		"nil for a mark":        {TypeHave, "\x81\xa1m\x91\xc0", "log id of 0 bytes"},
		"a mark's odd hash":     {TypeVector, "\x81\xa1m\x91\x82\xa1l" + l + "\xa1h" + bin([]byte("abc")), "hash of 3 bytes"},
		"a short sum":           {TypeVector, "\x81\xa1p\x91\x82\xa1p" + sum + "\xa1d" + bin([]byte("abc")), "sum of 3 bytes"},
		"no records":            {TypeRecords, "\x83\xa1l" + l + "\xa1f\x01\xa1r\x90", "without records"},
		"unsigned end":          {TypeRecords, "\x83\xa1l" + l + "\xa1f\x01\xa1r\x91\x80", "within a commit"},
		"a short signature":     {TypeRecords, "\x83\xa1l" + l + "\xa1f\x01\xa1r\x91\x81\xa1s" + bin([]byte("abc")), "signature of 3"},
		"first without prev":    {TypeRecords, "\x83\xa1l" + l + "\xa1f\x02\xa1r\x91\x80", "no predecessor"},
		"a kind not UTF-8":      {TypeRecords, "\x83\xa1l" + l + "\xa1f\x01\xa1r\x91\x81\xa1k" + bin([]byte("\xff")), "kind is not UTF-8"},
		"hello without start":   {TypeHello, "\x81\xa1v\x01", "start of 0 bytes"},
		"hello of version 0":    {TypeHello, "\x81\xa1s" + bin(make([]byte, 16)), "version is 0"},
		"a name of 300 bytes":   {TypeHello, "\x83\xa1v\x01\xa1s" + bin(make([]byte, 16)) + "\xa1n\xda\x01\x2c" + strings.Repeat("n", 300), "name of 300"},
		"an agent's bad id":     {TypePresence, "\x82\xa1s" + bin(make([]byte, 16)) + "\xa1a\x91\x81\xa1i\xa2a/", "not an agent id"},
		"minus one unread":      {TypePresence, "\x82\xa1s" + bin(make([]byte, 16)) + "\xa1a\x91\x82\xa1i\xa1a\xa1u\xff", "unread is -1"},
		"a piece past the end":  {TypeBlobData, "\x83\xa1h" + sum + "\xa1t\x01\xa1d" + bin([]byte("ab")), "a piece of 2"},
		"a blob of minus one":   {TypeBlobGet, "\x83\xa1h" + sum + "\xa1o\xff\xa1l\x01", "offset is -1"},
		"a blob without hash":   {TypeBlobGet, "\x81\xa1l\x01", "sha256 of 0"},
		"33 addresses":          {TypeAddrs, "\x82\xa1p" + sum + "\xa1a\xdc\x00\x21" + strings.Repeat("\xa1x", 33), "33 addresses"},
	} {
		_, err := Decode(c.typ, []byte(c.body))
		if !errors.Is(err, ErrBadFrame) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// What the walk lets through may be built of small things that become large ones: this bounds how large.
func TestTheWorstFrameThatPassesIsBounded(t *testing.T) {
	nils := "\xdc\x40\x00" + strings.Repeat("\xc0", elementsMax)
	small := "\xdc\x40\x00" + strings.Repeat("\x80", elementsMax)
	for _, key := range []string{"m", "p", "o", "r", "a", "n", "l", "b"} {
		for _, value := range []string{nils, small} {
			for typ := TypeHello; typ <= TypeStarted; typ++ {
				cost := allocated(func() { _, _ = Decode(typ, []byte("\x81\xa1"+key+value)) })
				if cost > 16<<20 {
					t.Errorf("type %d key %s: %d MiB for %d bytes", typ, key, cost>>20, len(value))
				}
			}
		}
	}
}

func TestTheWalkAllocatesNothing(t *testing.T) {
	for name, f := range samples() {
		b, err := Encode(f)
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(10, func() {
			if walk(b[headBytes:]) != nil {
				t.Fatal("refused")
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestNewerNodesAreUnderstoodAsFarAsTheyCanBe(t *testing.T) {
	f, err := Decode(200, []byte("anything"))
	if err != nil || f != (Unknown{200}) {
		t.Errorf("unknown type: got %v, %v", f, err)
	}
	f, err = Decode(TypePing, []byte("\x83\xa1i\x07\xa4more\x92\x81\xa1x\xc3\xcb\x00\x00\x00\x00\x00\x00\x00\x00\xa1w\x01"))
	if err != nil || f != (Ping{7, 1}) {
		t.Errorf("unknown key: got %v, %v", f, err)
	}
}

func TestALargeFrameIsRefusedBeforeItIsRead(t *testing.T) {
	for _, c := range []struct {
		head  string
		limit int
		want  error
	}{
		{"\xff\xff\xff\xff", 1 << 30, ErrFrameTooLarge},
		{"\x00\x10\x00\x01", protocol.MeshFrameBytesMax, ErrFrameTooLarge},
		{"\x00\x00\x01\x00", 255, ErrFrameTooLarge},
		{"\x00\x00\x00\x00", 255, ErrBadFrame},
		{"\x00\x00\x00\x02\x0c", 255, io.ErrUnexpectedEOF},
		{"\x00\x00\x00\x02", 255, io.ErrUnexpectedEOF},
		{"\x00\x00", 255, io.ErrUnexpectedEOF},
		{"", 255, io.EOF},
	} {
		var err error
		var n int
		cost := allocated(func() { _, n, err = ReadFrame(bufio.NewReader(strings.NewReader(c.head)), c.limit) })
		if !errors.Is(err, c.want) || n != len(c.head) {
			t.Errorf("%x: got %v after %d bytes, want %v", c.head, err, n, c.want)
		}
		if cost > 64<<10 {
			t.Errorf("%x: %d bytes allocated", c.head, cost)
		}
	}
	if _, err := Decode(TypeLive, make([]byte, protocol.MeshFrameBytesMax)); !errors.Is(err, ErrFrameTooLarge) {
		t.Errorf("got %v", err)
	}
}

func TestAfterABadFrameTheStreamStandsAtTheNext(t *testing.T) {
	good, err := Encode(Ping{ID: 3})
	if err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(bytes.NewReader(append([]byte("\x00\x00\x00\x03\x0c\x91\x01"), good...)))
	if _, _, err := ReadFrame(r, 1000); !errors.Is(err, ErrBadFrame) {
		t.Errorf("got %v", err)
	}
	if f, _, err := ReadFrame(r, 1000); err != nil || f != (Ping{ID: 3}) {
		t.Errorf("got %v, %v", f, err)
	}
}

// FuzzDecode holds that no bytes crash or bloat the decoder, and that what it takes can be written and read again.
func FuzzDecode(f *testing.F) {
	for _, s := range samples() {
		b, err := Encode(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[4], b[5:])
	}
	f.Add(TypeHave, []byte("\x81\xa1m\xdd\x02\xfa\xf0\x80"))
	f.Add(TypeRoster, []byte("\x81\xa1a\x91\x91\x91\xc0"))
	f.Fuzz(func(t *testing.T, typ byte, body []byte) {
		got, err := Decode(typ, body)
		if err != nil {
			if !errors.Is(err, ErrBadFrame) && !errors.Is(err, ErrFrameTooLarge) {
				t.Fatalf("an error of no kind: %v", err)
			}
			return
		}
		if _, ok := got.(Unknown); ok {
			return
		}
		b, err := Encode(got)
		if err != nil {
			t.Fatalf("taken, but not to be written: %v", err)
		}
		again, err := Decode(b[4], b[5:])
		if err != nil {
			t.Fatalf("written, but not to be read: %v", err)
		}
		b2, err := Encode(again)
		if err != nil || !bytes.Equal(b, b2) {
			t.Fatalf("two forms of one frame: %x and %x, %v", b, b2, err)
		}
	})
}
