package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"

	"github.com/aster-mesh/aster/protocol"
)

// pieceBytes is what one request of PutFile carries: at most so much is sent again after a cut.
const pieceBytes = 4 << 20

// PutFile stores what f gives, in pieces, from where an earlier attempt was cut off. It reads f twice: its hash comes first.
// progress, if set, is told how many of how many bytes are there.
func (c *Client) PutFile(ctx context.Context, name, mime string, f io.ReadSeeker, progress func(have, of int64)) (out protocol.BlobRef, err error) {
	h := sha256.New()
	total, err := io.Copy(h, io.LimitReader(f, protocol.BlobBytesMax+1))
	if err != nil {
		return out, fmt.Errorf("read %s: %w", name, err)
	}
	if total > protocol.BlobBytesMax {
		return out, protocol.Refuse(protocol.CodeFrameTooLarge, "%s has more than %d MB", "Say where it is instead: a path, an address, a commit", protocol.CutText(name, 120), protocol.BlobBytesMax>>20)
	}
	sum := hex.EncodeToString(h.Sum(nil))
	q := url.Values{}
	set(q, "name", name)
	set(q, "mime", mime)
	put := func(content string, body io.Reader) (have int64, whole bool, err error) {
		var got struct {
			Have *int64 `json:"have"` // of api.Upload: there is more to come
		}
		r := request{method: "PUT", path: []string{"blobs", sum}, query: q, body: body, kind: "application/octet-stream", content: content}
		err = c.call(ctx, r, nil, &got)
		if err != nil || got.Have == nil {
			return total, err == nil, err
		}
		return *got.Have, false, nil
	}
	have, whole, err := put(fmt.Sprintf("bytes */%d", total), nil)
	for err == nil && !whole {
		if progress != nil {
			progress(have, total)
		}
		if have >= total {
			return out, fmt.Errorf("%w: it has all of %s and does not say so", ErrLost, name)
		}
		if _, err = f.Seek(have, io.SeekStart); err != nil {
			return out, fmt.Errorf("read %s: %w", name, err)
		}
		to := min(have+pieceBytes, total)
		have, whole, err = put(fmt.Sprintf("bytes %d-%d/%d", have, to-1, total), io.LimitReader(f, to-have))
	}
	if err != nil {
		return out, err
	}
	if progress != nil {
		progress(total, total)
	}
	return protocol.BlobRef{SHA256: sum, Bytes: total, Name: name, Mime: mime}, nil
}

// Attachment returns content that a message names; the caller closes it.
func (c *Client) Attachment(ctx context.Context, msg, sha string) (io.ReadCloser, error) {
	return c.open(ctx, get("messages", msg, "attachments", sha))
}
