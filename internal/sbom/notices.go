package main

import (
	"cmp"
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// licence matches the names of files that a module's terms are in.
var licence = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|unlicense)([.-].*)?$`)

// source is a module of a program and the folder that it lies in.
type source struct{ path, version, dir string }

// writeNotices writes the terms of all modules in the programs, each once, and Go's:
// a program that is given away has to bring them along.
func writeNotices(w io.Writer, files []string) error {
	list, err := sources(files)
	if err != nil {
		return err
	}
	for _, s := range list {
		texts, err := terms(s.dir)
		if err != nil {
			return fmt.Errorf("%s: %w", s.path, err)
		}
		fmt.Fprintf(w, "%s\n%s %s\n\n", strings.Repeat("=", 78), s.path, s.version)
		for _, text := range texts {
			if _, err := fmt.Fprintf(w, "%s\n\n", strings.TrimSpace(text)); err != nil {
				return err
			}
		}
	}
	return nil
}

// sources lists the modules of the programs by path, and finds them by asking go.
func sources(files []string) ([]source, error) {
	found := map[string]source{}
	for _, file := range files {
		info, err := buildinfo.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, m := range info.Deps {
			dir, err := ask("list", "-m", "-f", "{{.Dir}}", m.Path+"@"+m.Version)
			if err == nil && dir == "" {
				err = fmt.Errorf("%s %s is not in the module cache", m.Path, m.Version)
			}
			if err != nil {
				return nil, err
			}
			found[m.Path] = source{m.Path, m.Version, dir}
		}
		root, err := ask("env", "GOROOT")
		if err != nil {
			return nil, err
		}
		found["Go"] = source{"Go", info.GoVersion, root}
	}
	list := make([]source, 0, len(found))
	for _, s := range found {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b source) int { return cmp.Compare(a.path, b.path) })
	return list, nil
}

// ask runs go.
func ask(args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// parts of a module with terms of their own that are compiled in.
var parts = []string{".", "ml/backend/ggml/ggml"}

// terms reads the files with the terms of a module.
func terms(dir string) ([]string, error) {
	var texts []string
	for _, part := range parts {
		entries, err := os.ReadDir(filepath.Join(dir, part))
		if part != "." && os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.IsDir() || !licence.MatchString(e.Name()) {
				continue
			}
			data, err := os.ReadFile(filepath.Join(dir, part, e.Name()))
			if err != nil {
				return nil, err
			}
			texts = append(texts, string(data))
		}
	}
	if len(texts) == 0 {
		return nil, fmt.Errorf("no licence in %s", dir)
	}
	return texts, nil
}
