package main

import (
	"os"
	"path/filepath"
	"strings"
)

// claimScopes makes absolute paths relative to the root of the repository that one stands in. A path elsewhere is refused: a
// claim on it would cover something of the same name in the repository.
func claimScopes(args []string) ([]string, error) {
	out := make([]string, len(args))
	for i, text := range args {
		out[i] = text
		name := strings.TrimPrefix(text, "path:")
		if !filepath.IsAbs(name) {
			continue
		}
		root := repositoryRoot()
		if root == "" {
			return nil, usage("%s is absolute, and this is no repository: claim paths relative to the repository's root, such as src/api", text)
		}
		rel, err := filepath.Rel(root, resolved(name))
		if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return nil, usage("%s is not below this repository (%s): claim paths relative to its root, such as src/api", text, tilde(root))
		}
		out[i] = filepath.ToSlash(rel)
	}
	return out, nil
}

// repositoryRoot is the next folder upwards that git keeps; "" when there is none.
func repositoryRoot() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	for dir = resolved(dir); ; {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}

// resolved follows links as far as the path is there: a file to come is below a folder that is.
func resolved(name string) string {
	for rest, dir := "", filepath.Clean(name); ; {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		up := filepath.Dir(dir)
		if up == dir {
			return filepath.Clean(name)
		}
		rest, dir = filepath.Join(filepath.Base(dir), rest), up
	}
}
