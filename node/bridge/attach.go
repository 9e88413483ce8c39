package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"os"
	"path/filepath"
	"strings"

	"github.com/aster-mesh/aster/protocol"
)

// What the files of one line may be.
const (
	attachMax      = 32        // as many as a message names
	attachBytesMax = 256 << 20 // of one line, so that one agent's files do not keep all others' lines waiting
)

// Codes of lines whose files cannot go along.
const (
	CodeAttachMissing    = "attachment-missing"
	CodeAttachOutside    = "attachment-outside"
	CodeAttachNotFile    = "attachment-not-a-file"
	CodeAttachUnreadable = "attachment-unreadable"
	CodeAttachChanged    = "attachment-changed"
	CodeAttachTooLarge   = "attachment-too-large"
	CodeAttachTooMany    = "attachment-quota"
	CodeAttachReserved   = "attachment-reserved"
)

// Reserved says whether a file of an agent's folder is the node's: its mail, and what it says of it.
func Reserved(name string) bool {
	name = strings.ToLower(name)
	return strings.HasSuffix(name, ".jsonl") && (strings.HasPrefix(name, "inbox.") || strings.HasPrefix(name, "outbox."))
}

// Attachment is a file as a line names it.
type Attachment struct {
	Path string `json:"path"` // in the agent's folder: relative to it, or absolute
	Name string `json:"name"` // what its receivers see; empty: the path's last part
	Mime string `json:"mime"` // empty: by the name's ending
}

const attachHint = `write {"to":"AGENT","intent":"NAME","value":{…},"attachments":["FILE",…]}, with files of this folder`

// attachments reads which files go along. A line that says something else than a message has none.
func (r *reader) attachments(line *Line) {
	raw, ok := r.fields["attachments"]
	if !ok {
		return
	}
	if line.Kind != KindMessage {
		r.refuse(protocol.CodeWrongType, `"attachments" go with a message`, attachHint)
		return
	}
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil || string(raw) == "null" {
		r.refuse(protocol.CodeWrongType, `"attachments" is not a list`, attachHint)
		return
	}
	if len(items) > attachMax {
		r.refuse(CodeAttachTooMany, fmt.Sprintf("%d attachments, at most %d go with a line", len(items), attachMax), "write several lines")
		return
	}
	for _, item := range items {
		var a Attachment
		if item[0] == '"' {
			_ = json.Unmarshal(item, &a.Path) // it is JSON
		} else if json.Unmarshal(item, &a) != nil {
			a.Path = ""
		}
		if a.Path == "" || strings.ContainsRune(a.Path, 0) {
			r.refuse(protocol.CodeWrongType, `an attachment is neither a path nor {"path":"…"}`, attachHint)
			return
		}
		line.Attach = append(line.Attach, a)
	}
	if len(line.Attach) > 0 {
		r.named(line)
	}
}

// named sees to it that the value can name what goes along.
func (r *reader) named(line *Line) {
	if len(line.Value) == 0 || string(line.Value) == "null" {
		line.Value = json.RawMessage("{}")
	}
	var value struct {
		Attachments json.RawMessage `json:"attachments"`
	}
	if json.Unmarshal(line.Value, &value) != nil || len(value.Attachments) > 0 && value.Attachments[0] != '[' {
		r.refuse(protocol.CodeWrongType, "the value cannot name what is attached", `"value" is an object, in which "attachments" is a list or absent`)
	}
}

// attach keeps the content of each file that the line names. A refusal is about the files, and the line is not said; after
// any other error it comes again.
func (o *outbox) attach(ctx context.Context, line *Line) error {
	if len(line.Attach) == 0 {
		return nil
	}
	root, err := os.OpenRoot(o.dir)
	if err != nil {
		return fmt.Errorf("open folder: %w", err)
	}
	defer root.Close()
	left := int64(attachBytesMax)
	for _, a := range line.Attach {
		ref, err := o.attachOne(ctx, root, a, left)
		if err != nil {
			return err
		}
		left -= ref.Bytes
		line.Blobs = append(line.Blobs, ref)
	}
	return nil
}

func (o *outbox) attachOne(ctx context.Context, root *os.Root, a Attachment, left int64) (ref protocol.BlobRef, err error) {
	path, no := o.within(a.Path)
	if no != nil {
		return ref, no
	}
	if filepath.Base(path) == path && Reserved(path) {
		return ref, refuseFile(CodeAttachReserved, path, "is this agent's mail, kept by the node", "write what matters of it into a file of its own, or into the value")
	}
	f, before, no := openAttached(root, path)
	if no != nil {
		return ref, no
	}
	defer f.Close()
	switch size := before.Size(); {
	case size > protocol.BlobBytesMax:
		return ref, refuseFile(CodeAttachTooLarge, path, fmt.Sprintf("has %d bytes, at most %d", size, protocol.BlobBytesMax), "say where it is instead: a path, an address, a commit")
	case size > left:
		return ref, refuseFile(CodeAttachTooMany, path, fmt.Sprintf("makes the files of this line more than %d bytes", attachBytesMax), "write several lines")
	}
	in := &attached{r: io.LimitReader(f, before.Size()+1)} // what grows is not followed
	ref, err = o.cfg.Keep(ctx, in)
	switch {
	case in.err != nil:
		return ref, refuseFile(CodeAttachUnreadable, path, "cannot be read: "+reason(in.err), "")
	case err != nil:
		return ref, err
	}
	after, err := f.Stat()
	if err != nil || ref.Bytes != before.Size() || after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime()) {
		return ref, refuseFile(CodeAttachChanged, path, "changed while it was read", "write the line once the file is whole and nobody writes to it")
	}
	ref.Name, ref.Mime = protocol.CutText(a.Name, 255), protocol.CutText(a.Mime, 127)
	if ref.Name == "" {
		ref.Name = protocol.CutText(filepath.Base(path), 255)
	}
	if ref.Mime == "" {
		ref.Mime = mime.TypeByExtension(filepath.Ext(ref.Name))
	}
	return ref, nil
}

// within makes a path of the agent's folder relative to it. The folder is the bound: whoever may only write there must not
// have other files sent by the node, which may read them.
func (o *outbox) within(named string) (string, *protocol.Refusal) {
	if strings.Contains(named, "://") {
		return "", refuseFile(CodeAttachOutside, named, "is an address and not a path", "name a file of the folder; an address can stand in the value")
	}
	path := filepath.FromSlash(named)
	if filepath.IsAbs(path) {
		folders := []string{o.dir}
		if abs, err := filepath.Abs(o.dir); err == nil {
			folders = append(folders, abs)
		}
		if real, err := filepath.EvalSymlinks(o.dir); err == nil {
			folders = append(folders, real)
		}
		for _, dir := range folders {
			if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
				return rel, nil
			}
		}
	} else if filepath.IsLocal(path) {
		return filepath.Clean(path), nil
	}
	return "", refuseFile(CodeAttachOutside, named, "is not in this agent's folder", "copy it there first: only files of the folder go along")
}

// openAttached opens a plain file of this user and follows no link on the way to it. What a link that appears meanwhile
// leads to is still in the folder: root leaves it for nothing.
func openAttached(root *os.Root, path string) (*os.File, fs.FileInfo, *protocol.Refusal) {
	for i := range path {
		if i > 0 && os.IsPathSeparator(path[i]) {
			info, err := root.Lstat(path[:i])
			if err == nil && !info.IsDir() {
				return nil, nil, refuseFile(CodeAttachNotFile, path, "lies behind "+what(info.Mode()), "attach the file itself")
			}
		}
	}
	info, err := root.Lstat(path)
	if err == nil && !info.Mode().IsRegular() {
		return nil, nil, refuseFile(CodeAttachNotFile, path, "is "+what(info.Mode()), "attach the file itself")
	}
	var f *os.File
	if err == nil {
		f, err = root.OpenFile(path, os.O_RDONLY|openFlags, 0)
	}
	if err == nil {
		if info, err = f.Stat(); err == nil {
			err = checkPlain(path, info)
		}
	}
	switch {
	case err == nil:
		return f, info, nil
	case f != nil:
		f.Close()
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, refuseFile(CodeAttachMissing, path, "is not there", "write the file first, then the line")
	case errors.Is(err, ErrForeign):
		return nil, nil, refuseFile(CodeAttachNotFile, path, "is not a plain file of this user", "attach a file of your own")
	}
	return nil, nil, refuseFile(CodeAttachUnreadable, path, "cannot be opened: "+reason(err), "")
}

func refuseFile(code, path, why, hint string) *protocol.Refusal {
	return protocol.Refuse(code, "%q %s", hint, protocol.CutText(path, 200), why)
}

// reason leaves the path out, which the refusal says already.
func reason(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return protocol.CutText(err.Error(), 200)
}

// attached tells errors of a file from those of the store that reads it.
type attached struct {
	r   io.Reader
	err error
}

func (a *attached) Read(p []byte) (int, error) {
	n, err := a.r.Read(p)
	if err != nil && err != io.EOF {
		a.err = err
	}
	return n, err
}
