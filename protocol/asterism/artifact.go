package asterism

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"

	"github.com/aster-mesh/aster/protocol"
)

// Attachments that lie at the hub (ours): a client gives one in pieces, names it in a message's value as an attachment with
// source "hub", and whoever may see that message fetches it in pieces. Clients that do not ask are told nothing of it. The
// fields are those of the contract's ArtifactChunk; artifact is the hash of the whole.
const (
	ArtifactOffer protocol.Intent = "ArtifactOffer" // begins, goes on with, or asks for the state of what one gives
	ArtifactPut   protocol.Intent = "ArtifactPut"   // one piece
	ArtifactGet   protocol.Intent = "ArtifactGet"   // asks for one piece
	ArtifactState protocol.Intent = "ArtifactState" // answers the first two
	ArtifactPiece protocol.Intent = "ArtifactPiece" // answers the third
)

// SourceHub is the source of an attachment that lies at the hub.
const SourceHub = "hub"

// ArtifactChunkBytes is the size of every piece but the last: with base64 round it still far below what the smallest known
// client takes in one frame.
const ArtifactChunkBytes = protocol.BlobChunkBytes

// AttachmentsMax is how many attachments at the hub one message may name.
const AttachmentsMax = 32

// Codes of what may go wrong with them.
const (
	CodeAttachmentTooLarge = "attachment-too-large"
	CodeAttachmentUnknown  = "attachment-unknown"
	CodeAttachmentQuota    = "attachment-quota"
	CodeWrongHash          = "wrong-hash"
	CodeWrongLength        = "wrong-length"
	CodeChunkOutOfRange    = "chunk-out-of-range"
)

// Offer is the value of an ArtifactOffer.
type Offer struct {
	Artifact string `json:"artifact"`
	Size     int64  `json:"size"`
	Discard  bool   `json:"discard,omitempty"` // it will not be given: forget what came
}

// Put is the value of an ArtifactPut.
type Put struct {
	Artifact string `json:"artifact"`
	Index    int    `json:"chunk_index"`
	Encoding string `json:"encoding,omitempty"`
	SHA256   string `json:"sha256,omitempty"` // of the piece
	Data     []byte `json:"-"`
}

// Get is the value of an ArtifactGet: which piece, and the message that names the attachment.
type Get struct {
	Artifact string           `json:"artifact"`
	Index    int              `json:"chunk_index"`
	Of       protocol.MsgID   `json:"of"`
	From     protocol.AgentID `json:"from,omitempty"` // its sender, where several messages may have this id
}

// StateOfArtifact is the value of an ArtifactState.
type StateOfArtifact struct {
	Artifact string `json:"artifact"`
	Size     int64  `json:"size"`
	Chunk    int    `json:"chunk_size"`
	Count    int    `json:"chunk_count"`
	Have     int    `json:"have"` // pieces here, from the first: the index to go on with
	Complete bool   `json:"complete"`
	Re       string `json:"re_msgId,omitempty"`
}

// PieceOfArtifact is the value of an ArtifactPiece.
type PieceOfArtifact struct {
	Artifact string `json:"artifact"`
	Size     int64  `json:"size"`
	Index    int    `json:"chunk_index"`
	Count    int    `json:"chunk_count"`
	Encoding string `json:"encoding"`
	Data     []byte `json:"data"`
	SHA256   string `json:"sha256"`
	Re       string `json:"re_msgId,omitempty"`
}

// ChunkCount is how many pieces content of a size has.
func ChunkCount(size int64) int { return int((size + ArtifactChunkBytes - 1) / ArtifactChunkBytes) }

// ChunkLength is the length of one of them; 0: there is none of that index.
func ChunkLength(size int64, index int) int {
	if index < 0 || index >= ChunkCount(size) {
		return 0
	}
	return int(min(ArtifactChunkBytes, size-int64(index)*ArtifactChunkBytes))
}

// HashOf is the hash that names content or a piece of it.
func HashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// IsHash says whether s is the hex SHA-256 of something, in lower case.
func IsHash(s string) bool {
	return len(s) == 2*sha256.Size && strings.Trim(s, "0123456789abcdef") == ""
}

// readValue decodes a value into a struct, and names the field that is of another type.
func readValue[T any](value json.RawMessage) (v T, no *protocol.Refusal) {
	err := json.Unmarshal(value, &v)
	var odd *json.UnmarshalTypeError
	switch {
	case errors.As(err, &odd) && odd.Field != "":
		return v, protocol.Refuse(protocol.CodeWrongType, "value.%s is of a wrong type", "", odd.Field)
	case err != nil || len(value) == 0 || value[0] != '{':
		return v, protocol.Refuse(protocol.CodeWrongType, "the value must be an object", "")
	}
	return v, nil
}

func checkArtifact(sha string) *protocol.Refusal {
	if !IsHash(sha) {
		return protocol.Refuse(protocol.CodeWrongType, "value.artifact is the SHA-256 of the whole, 64 hex digits in lower case", "")
	}
	return nil
}

// ParseOffer reads an ArtifactOffer.
func ParseOffer(value json.RawMessage) (Offer, *protocol.Refusal) {
	o, no := readValue[Offer](value)
	if no == nil {
		no = checkArtifact(o.Artifact)
	}
	switch {
	case no != nil:
	case o.Size < 0:
		no = protocol.Refuse(CodeWrongLength, "value.size is below zero", "")
	case o.Size > protocol.BlobBytesMax:
		no = protocol.Refuse(CodeAttachmentTooLarge, "%d bytes, at most %d", "say where it is instead: a path, an address, a commit", o.Size, protocol.BlobBytesMax)
	}
	return o, no
}

// ParsePut reads an ArtifactPut and compares the piece with its own hash, which must be there.
func ParsePut(value json.RawMessage) (Put, *protocol.Refusal) {
	data := valueField(value, "data")
	if len(data) > base64.StdEncoding.EncodedLen(ArtifactChunkBytes)*2 { // escapes may double it
		return Put{}, protocol.Refuse(CodeWrongLength, "a piece has at most %d bytes", "", ArtifactChunkBytes)
	}
	p, no := readValue[Put](value)
	if no == nil {
		no = checkArtifact(p.Artifact)
	}
	if no != nil {
		return Put{}, no
	}
	if p.Encoding != "" && p.Encoding != "base64" {
		return Put{}, protocol.Refuse(protocol.CodeWrongType, "value.encoding is base64", "")
	}
	if len(data) == 0 || data[0] != '"' || json.Unmarshal(data, &p.Data) != nil {
		return Put{}, protocol.Refuse(protocol.CodeWrongType, "value.data is a piece in base64", "")
	}
	switch {
	case len(p.Data) == 0 || len(p.Data) > ArtifactChunkBytes:
		return Put{}, protocol.Refuse(CodeWrongLength, "a piece of %d bytes; it has 1 to %d", "", len(p.Data), ArtifactChunkBytes)
	case p.SHA256 != HashOf(p.Data):
		return Put{}, protocol.Refuse(CodeWrongHash, "the piece is not what value.sha256 says", "send it again")
	}
	return p, nil
}

// ParseGet reads an ArtifactGet.
func ParseGet(value json.RawMessage) (Get, *protocol.Refusal) {
	g, no := readValue[Get](value)
	if no == nil {
		no = checkArtifact(g.Artifact)
	}
	switch {
	case no != nil:
	case g.Of == "":
		no = protocol.Refuse(protocol.CodeWrongType, "value.of is the id of the message that names the attachment", "")
	case g.Index < 0:
		no = protocol.Refuse(CodeChunkOutOfRange, "value.chunk_index is below zero", "")
	}
	return g, no
}

// Named is one attachment at the hub as a message's value names it.
type Named struct {
	protocol.BlobRef
	Of   protocol.MsgID   // the message by which its sender has it; empty: it gave the attachment itself
	From protocol.AgentID // that message's sender
}

// attachmentFields are where clients look for attachments in a value (wire 6.7).
var attachmentFields = [...]string{"attachments", "atts", "files", "attachment", "file", "zip"}

// NamedIn finds the attachments with source "hub" that a value names. What is named otherwise is its sender's affair.
func NamedIn(value json.RawMessage) (out []Named, no *protocol.Refusal) {
	for _, name := range attachmentFields {
		raw := valueField(value, name)
		if len(raw) == 0 {
			continue
		}
		items := []json.RawMessage{raw}
		if raw[0] == '[' {
			items = nil
			_ = json.Unmarshal(raw, &items) // it passed scan
		}
		for _, item := range items {
			if source, _ := valueText(item, "source"); source != SourceHub {
				continue
			}
			n, no := namedItem(item)
			if no != nil {
				return nil, no
			}
			if out = append(out, n); len(out) > AttachmentsMax {
				return nil, protocol.Refuse(CodeAttachmentQuota, "a message names at most %d attachments", "send several messages", AttachmentsMax)
			}
		}
	}
	return out, nil
}

func namedItem(item json.RawMessage) (Named, *protocol.Refusal) {
	v, no := readValue[struct {
		SHA256 string           `json:"sha256"`
		Size   int64            `json:"size"`
		Name   string           `json:"name"`
		Mime   string           `json:"mime"`
		Of     protocol.MsgID   `json:"of"`
		From   protocol.AgentID `json:"from"`
	}](item)
	if no != nil {
		return Named{}, no
	}
	if !IsHash(v.SHA256) {
		return Named{}, protocol.Refuse(protocol.CodeWrongType, "an attachment at the hub has a sha256 of 64 hex digits in lower case", "")
	}
	ref := protocol.BlobRef{SHA256: v.SHA256, Bytes: v.Size, Name: protocol.CutText(v.Name, 255), Mime: protocol.CutText(v.Mime, 127)}
	return Named{ref, v.Of, v.From}, nil
}

// attachment is how a value names content at the hub.
type attachment struct {
	Name   string `json:"name"`
	Mime   string `json:"mime"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	Source string `json:"source"`
}

// WithAttachments puts the plain attachments of refs into a value that is an object, unless it names them already. Git bundles and
// outputs stay between nodes. Any other value stays as it is.
func WithAttachments(value json.RawMessage, refs []protocol.BlobRef) json.RawMessage {
	already, no := NamedIn(value)
	if no != nil || len(value) == 0 || value[0] != '{' {
		return value
	}
	has := map[string]bool{}
	for _, n := range already {
		has[n.SHA256] = true
	}
	var list []json.RawMessage
	if raw := valueField(value, "attachments"); len(raw) > 0 && (raw[0] != '[' || json.Unmarshal(raw, &list) != nil) {
		return value
	}
	before := len(list)
	for _, r := range refs {
		if r.Use == "" && !has[r.SHA256] {
			list = append(list, protocol.EncodeBody(attachment{r.Name, r.Mime, r.Bytes, r.SHA256, SourceHub}))
		}
	}
	var fields map[string]json.RawMessage
	if len(list) == before || json.Unmarshal(value, &fields) != nil {
		return value
	}
	fields["attachments"] = protocol.EncodeBody(list)
	return protocol.EncodeBody(fields)
}
