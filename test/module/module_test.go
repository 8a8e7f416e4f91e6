// Package module tests the project as other modules see it: the last commit goes
// into a module proxy made of files, and from there into a program that requires
// it, and into go install.
package module

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

const (
	path = "github.com/inkling-go/inkling"
	root = "../.."
)

// TestRequired builds and runs a program of another module.
func TestRequired(t *testing.T) {
	version, env := publish(t)
	dir := t.TempDir()
	source, err := os.ReadFile("testdata/consumer/main.go")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "main.go"), source)
	write(t, filepath.Join(dir, "go.mod"), fmt.Appendf(nil, "module example.org/consumer\n\ngo 1.26.0\n\nrequire %s %s\n", path, version))
	command(t, dir, env, "go", "mod", "tidy")
	command(t, dir, env, "go", "build", "-o", "consumer", ".")
	home := strings.TrimSpace(command(t, dir, env, "go", "list", "-m", "-f", "{{.Dir}}", path))
	got := command(t, dir, env, "./consumer", filepath.Join(home, "testdata"), filepath.Join(dir, "out"))
	if want := "A pink cross.\n"; got != want {
		t.Errorf("the program says %q, want %q", got, want)
	}
}

// TestInstalled installs the two tools.
func TestInstalled(t *testing.T) {
	version, env := publish(t)
	bin := t.TempDir()
	env = append(env, "GOBIN="+bin, "GOFLAGS=")
	for _, tool := range []string{"inkling-run", "convert-inkling"} {
		command(t, bin, env, "go", "install", path+"/cmd/"+tool+"@"+version)
	}
	if got := command(t, bin, env, "./inkling-run", "version"); !strings.HasPrefix(got, "inkling-run "+version+",") {
		t.Errorf("inkling-run version prints %q, want version %s", got, version)
	}
	if got := command(t, bin, env, "./convert-inkling", "--help"); !strings.Contains(got, "SRC_DIR") {
		t.Errorf("convert-inkling --help prints %q", got)
	}
}

// publish puts the last commit into a proxy. It returns the version there, and the
// environment in which go takes this module from the proxy and others from where it
// always does. The module cache is that of the user, which has ggml compiled; what
// came into it is removed at the end.
func publish(t *testing.T) (version string, env []string) {
	t.Helper()
	commit := strings.TrimSpace(command(t, root, os.Environ(), "git", "rev-parse", "HEAD"))
	m := module.Version{Path: path, Version: "v0.0.1-c" + commit[:12]}
	proxy := t.TempDir()
	dir := filepath.Join(proxy, filepath.FromSlash(path), "@v")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	data := new(bytes.Buffer)
	if err := zip.CreateFromVCS(data, m, absolute(t, root), commit, ""); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, m.Version+".zip"), data.Bytes())
	write(t, filepath.Join(dir, m.Version+".mod"), []byte(command(t, root, os.Environ(), "git", "show", commit+":go.mod")))
	write(t, filepath.Join(dir, m.Version+".info"), fmt.Appendf(nil, `{"Version":%q,"Time":%q}`, m.Version, time.Now().UTC().Format(time.RFC3339)))
	write(t, filepath.Join(dir, "list"), []byte(m.Version+"\n"))

	cache := strings.TrimSpace(command(t, root, os.Environ(), "go", "env", "GOMODCACHE"))
	t.Cleanup(func() { forget(t, cache, m) })
	others := strings.TrimSpace(command(t, root, os.Environ(), "go", "env", "GOPROXY"))
	return m.Version, append(os.Environ(), "GOPROXY=file://"+proxy+","+others, "GONOSUMDB="+path, "GOFLAGS=-mod=mod")
}

// forget removes a version from the module cache, whose folders are read-only.
func forget(t *testing.T, cache string, m module.Version) {
	tree := filepath.Join(cache, filepath.FromSlash(m.Path)+"@"+m.Version)
	err := filepath.WalkDir(tree, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return os.Chmod(p, 0o700)
	})
	if err != nil && !os.IsNotExist(err) {
		t.Error(err)
	}
	files, err := filepath.Glob(filepath.Join(cache, "cache", "download", filepath.FromSlash(m.Path), "@v", m.Version+".*"))
	if err != nil {
		t.Error(err)
	}
	for _, f := range append(files, tree) {
		if err := os.RemoveAll(f); err != nil {
			t.Error(err)
		}
	}
}

// command runs a command in a folder and returns what it prints.
func command(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, env
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", cmd, err, out, stderr.Bytes())
	}
	return string(out)
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	abs, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return abs
}
