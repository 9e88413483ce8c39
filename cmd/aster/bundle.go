package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"time"

	"github.com/aster-mesh/aster/node"
)

// bundleLogBytesMax bounds the diagnostics that go into a bundle.
const bundleLogBytesMax = 2 << 20

// writeBundle writes what helps to explain a fault from afar. It holds no message, and what looks like a secret is
// taken out of the diagnostics, which should hold none in the first place.
func (a *app) writeBundle(ctx context.Context, path string, found []finding) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return failed("%s exists already. Name another file", tilde(path))
	}
	if err != nil {
		return fmt.Errorf("write bundle: %w", err)
	}
	zip := gzip.NewWriter(f)
	out := tar.NewWriter(zip)
	for _, part := range a.bundleParts(ctx, found) {
		err = errors.Join(err, addPart(out, part))
	}
	if err = errors.Join(err, out.Close(), zip.Close(), f.Close()); err != nil {
		return fmt.Errorf("write bundle: %w", err)
	}
	return nil
}

type bundlePart struct {
	name string
	body []byte
}

func addPart(out *tar.Writer, p bundlePart) error {
	if err := out.WriteHeader(&tar.Header{Name: "aster/" + p.name, Mode: 0o600, Size: int64(len(p.body)), ModTime: time.Now()}); err != nil {
		return err
	}
	_, err := out.Write(p.body)
	return err
}

func (a *app) bundleParts(ctx context.Context, found []finding) []bundlePart {
	parts := []bundlePart{
		jsonPart("build.json", map[string]string{"version": version(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH}),
		jsonPart("doctor.json", found),
	}
	collector := ""
	if cfg, err := settle(a.home, nil); err == nil {
		collector = cfg.Trace.Endpoint
		values := map[string]any{}
		for _, s := range settings {
			values[s.key] = map[string]any{"value": s.of(&cfg.Config), "source": cfg.source[s.key]}
		}
		values["worker.command"] = fmt.Sprintf("%d words, left out", len(cfg.Worker.Command))                                  // may hold credentials
		values["trace.endpoint"] = map[string]any{"value": node.TracePlace(collector), "source": cfg.source["trace.endpoint"]} // its path may be a token
		parts = append(parts, jsonPart("config.json", values))
	}
	if c, err := a.node(); err == nil {
		defer c.Close()
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		if s, err := c.Status(ctx); err == nil {
			parts = append(parts, jsonPart("status.json", s))
		}
		if p, err := c.Peers(ctx); err == nil {
			parts = append(parts, jsonPart("peers.json", p))
		}
	}
	for _, name := range []string{logName + ".1", logName} {
		if raw, err := lastBytes(filepath.Join(a.home, name), bundleLogBytesMax); err == nil {
			if collector != "" {
				raw = bytes.ReplaceAll(raw, []byte(collector), []byte(node.TracePlace(collector)))
			}
			parts = append(parts, bundlePart{name + ".txt", redact(raw)})
		}
	}
	return parts
}

func jsonPart(name string, v any) bundlePart {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		raw = []byte(`"could not be encoded"`)
	}
	return bundlePart{name, redact(append(raw, '\n'))}
}

func lastBytes(path string, n int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.NewSectionReader(f, max(info.Size()-n, 0), n))
}

// secretForms are what secrets look like wherever they stand: invites, bearer tokens, keys of the contract (wire 3.8),
// keys in addresses, and tickets of the board's links.
var secretForms = []*regexp.Regexp{
	regexp.MustCompile(`aster1-[A-Za-z0-9_-]+`),
	regexp.MustCompile(`(?i)bearer\s+\S+`),
	regexp.MustCompile(`\b(?:lk|ck|pk|uk|ok)-[A-Za-z0-9_-]{6,}`),
	regexp.MustCompile(`(?i)\b(?:[a-z]*key|token|secret|invite|password|ticket)["']?\s*[=:]\s*["']?[^\s"'&,}]+`),
	regexp.MustCompile(`/open/[A-Za-z0-9_-]+`),
}

func redact(raw []byte) []byte {
	for _, form := range secretForms {
		raw = form.ReplaceAll(raw, []byte("REDACTED"))
	}
	return raw
}
