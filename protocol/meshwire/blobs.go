package meshwire

import (
	"fmt"

	"github.com/aster-mesh/aster/protocol"
)

type wBlobGet struct {
	Sum    []byte `msgpack:"h"`
	Offset int64  `msgpack:"o"`
	Length int64  `msgpack:"l"`
}

func (w *wBlobGet) frame() (Frame, error) {
	sum, err := toSHA(w.Sum)
	if err != nil {
		return nil, err
	}
	if err := checkRange("offset", w.Offset, 0, protocol.BlobBytesMax); err != nil {
		return nil, err
	}
	return BlobGet{sum, w.Offset, w.Length}, checkRange("length", w.Length, 1, protocol.BlobBytesMax)
}

type wBlobData struct {
	Sum     []byte `msgpack:"h"`
	Offset  int64  `msgpack:"o"`
	Total   int64  `msgpack:"t"`
	Data    []byte `msgpack:"d"`
	Missing bool   `msgpack:"x"`
	Left    bool   `msgpack:"g,omitempty"`
}

func (w *wBlobData) frame() (Frame, error) {
	sum, err := toSHA(w.Sum)
	if err != nil {
		return nil, err
	}
	if err := checkRange("total", w.Total, 0, protocol.BlobBytesMax); err != nil {
		return nil, err
	}
	if err := checkRange("offset", w.Offset, 0, w.Total); err != nil {
		return nil, err
	}
	if int64(len(w.Data)) > w.Total-w.Offset || len(w.Data) > protocol.BlobChunkBytes {
		return nil, fmt.Errorf("%w: a piece of %d bytes at %d of %d, at most %d", ErrBadFrame, len(w.Data), w.Offset, w.Total, protocol.BlobChunkBytes)
	}
	return BlobData{sum, w.Offset, w.Total, w.Data, w.Missing, w.Missing && w.Left}, nil
}
